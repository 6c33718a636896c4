"""Network topology of nodes from providers and the spec, in Slurm's form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.derived.hostlist import expand
from ....schemas.spec import CloudSite, ClusterSpec, Pool, SlurmScheduler
from ....schemas.spec.scheduler import Topology as Asked
from ....schemas.stack.lock import load_lock, older
from ...hosts import Host, in_block, pool_host_names
from ...topology import FLAT, Topology, topology_of
from ..node import NodeFacts
from ..steps import Json


def slurm_release(controllers: Iterable[NodeFacts]) -> str | None:
    """Return the oldest Slurm among controllers: what they resolve to, else their distribution's.

    None where neither is known. Reads the software lock.
    """
    lock = load_lock()
    found: str | None = None
    for node in controllers:
        requested = (node.pool.software, node.spec.software)
        distributions = [
            one.distribution for one in requested if one and one.distribution != "auto"
        ]
        own = lock.slurm_package(node.software.distribution or next(iter(distributions), None))
        version = node.version("slurm") or own
        if version is not None and (found is None or older(version, found)):
            found = version
    return found


def has_feature(release: str | None, feature: str) -> bool:
    """Whether a Slurm has what came with some release; True where the release isn't known."""
    least = next(f.at_least for f in load_lock().features if f.feature == feature)
    return release is None or not older(release, least)


def slurm_topology(
    spec: ClusterSpec,
    hosts: Sequence[Host],
    catalog: Catalog,
    controllers: Sequence[NodeFacts] = (),
) -> Json:
    """Return the topology of nodes in role slurm's form.

    `format` is "yaml" for a Slurm that reads topology.yaml, which has precedence over topology.conf
    there.

    Args:
        spec: the cluster.
        hosts: those that run jobs, by pool in the order of their names.
        catalog: has which machines are in one placement of their cloud.
        controllers: whose Slurm
        reads it; without any blocks are allowed.
    """
    slurm = spec.scheduler
    wanted = slurm.topology if isinstance(slurm, SlurmScheduler) else Asked()
    placed = in_order(spec, hosts)
    if not any(host.placement.block or host.placement.leaf for host in placed):
        return msgspec.to_builtins(FLAT)
    release = slurm_release(controllers)
    supports_blocks = has_feature(release, "topology/block")

    def found(members: Sequence[Host]) -> Topology:
        return topology_of(
            members, wanted.plugin, wanted.block_sizes, supports_blocks=supports_blocks
        )

    topology = found(placed)
    if topology == FLAT:
        topology = found(in_placements(spec, placed, catalog))
    written: dict[str, Json] = msgspec.to_builtins(topology)
    if topology != FLAT and release is not None and has_feature(release, "topology.yaml"):
        written["format"] = "yaml"
    return written


def in_order(spec: ClusterSpec, hosts: Sequence[Host]) -> list[Host]:
    """Return the hosts, those without a block in blocks of their pool's `nodes_per_block`.

    Machines that a site makes count by their names: one that is missing moves no other. Hosts that
    exist have their blocks already.
    """
    index = {
        host: (name, number)
        for name, pool in spec.pools.items()
        if pool.nodes_per_block is not None and pool.hosts is None
        for number, host in enumerate(_all_names(name, pool))
    }
    placed = []
    for host in hosts:
        found = index.get(host.name)
        block = None if found is None else spec.pools[host.pool].block_of(*found)
        placed.append(in_block(host, block))
    return placed


def _all_names(name: str, pool: Pool) -> list[str]:
    """Return the names of all machines that a pool may have at once, and of those it skips."""
    skipped = 0 if pool.skip is None else len(expand(pool.skip))
    count = None if pool.most is None else pool.most + skipped
    return pool_host_names(name, msgspec.structs.replace(pool, count=count, skip=None))


def in_placements(spec: ClusterSpec, hosts: Sequence[Host], catalog: Catalog) -> list[Host]:
    """Return the hosts, with one block per placement where a cloud returns no topology.

    That is a placement group, a capacity block, or a compact placement: each pool has its own.
    """
    return [
        in_block(host, host.pool if _is_placed(spec, host, catalog) else None) for host in hosts
    ]


def _is_placed(spec: ClusterSpec, host: Host, catalog: Catalog) -> bool:
    """Whether a host is in a placement of its pool's own."""
    pool = spec.pools[host.pool]
    machine = None if pool.machine is None else catalog.machines[pool.machine]
    together = machine is not None and machine.placement is not None
    in_cloud = isinstance(spec.sites[pool.site], CloudSite)
    return in_cloud and together and pool.placement not in {"none", "spread"}
