"""The hundreds of codes: what a code is about can be told from its first digit."""

from __future__ import annotations

import msgspec


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A hundred of codes."""

    digit: str
    title: str
    about: str
    """What belongs there, in a few words."""


FAMILIES = (
    Family(
        digit="0",
        title="Structure",
        about="what keeps a file from being read as a spec",
    ),
    Family(digit="1", title="Capacity", about="machines, counts, hosts, zones, quotas"),
    Family(digit="2", title="Fabric", about="what the nodes' fast network is and can do"),
    Family(digit="3", title="Network", about="addresses and who may reach them"),
    Family(digit="4", title="Storage", about="sizes, mounts, throughput"),
    Family(digit="5", title="Scheduler and users", about="partitions, queues, accounts"),
    Family(digit="6", title="Software", about="versions that go together"),
    Family(digit="7", title="Hybrid", about="work that moves between sites"),
    Family(digit="8", title="Budget and policy", about="money, an organisation's rules, fleets"),
    Family(
        digit="9",
        title="Running",
        about="state, providers, nodes, the AllReduce, this command line",
    ),
)


def family_of(code: str) -> Family:
    """Return the family of a code such as GC204."""
    return FAMILIES[int(code[2])]
