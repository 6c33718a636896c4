"""The hundreds of codes: what a code is about can be told from its number."""

from __future__ import annotations

import msgspec


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A hundred of codes."""

    hundred: int
    """First digits of its codes: 2 of GC204, 10 of GC1003."""
    title: str
    about: str
    """What belongs there, in a few words."""


FAMILIES = (
    Family(
        hundred=0,
        title="Structure",
        about="what keeps a file from being read as a spec",
    ),
    Family(hundred=1, title="Capacity", about="machines, counts, hosts, zones, quotas"),
    Family(hundred=2, title="Fabric", about="what the nodes' fast network is and can do"),
    Family(hundred=3, title="Network", about="addresses and who may reach them"),
    Family(hundred=4, title="Storage", about="sizes, mounts, throughput"),
    Family(hundred=5, title="Scheduler and users", about="partitions, queues, accounts"),
    Family(hundred=6, title="Software", about="versions that go together"),
    Family(hundred=7, title="Hybrid", about="work that moves between sites"),
    Family(hundred=8, title="Budget and policy", about="money, an organisation's rules, fleets"),
    Family(
        hundred=9,
        title="Running",
        about="state, providers, nodes, the AllReduce, this command line",
    ),
    Family(
        hundred=10,
        title="Running Kubernetes",
        about="bundles, control planes, nodes and what is applied to them",
    ),
    Family(
        hundred=11,
        title="Upkeep",
        about="drift, repair, pipelines, what ends by itself, adoption, secrets that change",
    ),
)


def family_of(code: str) -> Family:
    """Return the family of a code such as GC204."""
    return FAMILIES[number_of(code) // 100]


def number_of(code: str) -> int:
    """Return what codes are ordered by: GC204 comes before GC1003."""
    return int(code.removeprefix("GC"))
