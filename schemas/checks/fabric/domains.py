"""Jobs stay within one fabric and one NVLink domain."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from ...diagnostics import PathTuple, Severity, listing
from ...spec import Pool
from ..capacity.placement import is_fabric_domain, zones_of_pool
from ..context import CheckContext
from ..registry import Finding, check
from .fabrics import impossible_pools


def partitions_of_spec(context: CheckContext) -> Iterator[tuple[str, PathTuple, list[str]]]:
    """Yield (partition, place, compute pools): "main" with all of them where the spec has none."""
    if context.scheduler is None:
        return
    written = context.scheduler.partitions
    for name, partition in written.items():
        pools = [pool for pool in partition.pools if _computes(context, pool)]
        yield name, ("scheduler", "partitions", name, "pools"), list(dict.fromkeys(pools))
    if not written:
        yield "main", ("pools",), [name for name in context.pools if _computes(context, name)]


def _computes(context: CheckContext, name: str) -> bool:
    pool = context.pools.get(name)
    return pool is not None and pool.is_compute


def _has_gpus(context: CheckContext, name: str) -> bool:
    machine = context.machine(context.pools[name])
    return machine is not None and machine.gpu is not None


def _spans(
    context: CheckContext, key: Callable[[str], Hashable | None]
) -> Iterator[tuple[str, PathTuple, Mapping[Hashable, list[str]]]]:
    """Yield partitions whose pools differ by a key, with the pools of each; None: not known."""
    for partition, path, pools in partitions_of_spec(context):
        groups: dict[Hashable, list[str]] = {}
        for name in pools:
            value = key(name)
            if value is not None:
                groups.setdefault(value, []).append(name)
        if len(groups) > 1:
            yield partition, path, groups


def _relies_on(path: PathTuple, *keys: str) -> tuple[PathTuple, ...]:
    return path, ("scheduler", "partitions"), *(("pools", "*", key) for key in keys)


def _as_text(groups: Mapping[Hashable, list[str]]) -> str:
    return "; ".join(f"{what}: {listing(pools, limit=3)}" for what, pools in groups.items())


@check("GC207", summary="Pools of several fabric classes in one partition.")
def partition_mixes_fabrics(context: CheckContext) -> Iterator[Finding]:
    """Jobs that span pools of different fabrics talk over plain TCP, or not at all.

    The smoke test's AllReduce runs over all pools of a partition too, and is judged by the slowest.
    Give each class a partition of its own.
    """
    mistaken = impossible_pools(context)

    def fabric_class(name: str) -> str | None:
        if name in mistaken:
            return None  # GC202 or GC206 says so; what the pool has instead is not known
        fabric = context.fabric(context.pools[name]) if _has_gpus(context, name) else None
        return None if fabric is None else fabric.name

    for partition, path, groups in _spans(context, fabric_class):
        yield Finding(
            summary=f'partition "{partition}" holds pools of {len(groups)} fabric classes: '
            f"{_as_text(groups)}",
            path=path,
            at_key=True,
            severity=Severity.WARNING,
            hint="make a partition for each fabric class",
            relies_on=_relies_on(path, "fabric", "machine", "site", "role"),
        )


@check("GC208", summary="Pools in one partition whose fabrics don't reach each other.")
def fabrics_not_connected(context: CheckContext) -> Iterator[Finding]:
    """A fabric ends somewhere: EFA and Google's at the zone, Azure's at the placement group.

    Pools of one class in two zones, placement groups or sites are two fabrics: jobs that span them
    fall back to plain TCP between the two. Give each a partition of its own.
    """

    def domain(name: str) -> tuple[str, str, str] | None:
        pool = context.pools[name]
        machine, fabric = context.machine(pool), context.fabric(pool)
        if fabric is None or fabric.plugin is None or context.provider(pool) is None:
            return None
        if not _has_gpus(context, name):
            return None
        if machine is not None and is_fabric_domain(machine) and context.cloud(pool) is not None:
            return fabric.name, pool.site, f'placement group of "{name}"'
        zones = {zone for zone, _ in zones_of_pool(context, name)}
        if fabric.reach == "zone":
            return (fabric.name, pool.site, zones.pop()) if len(zones) == 1 else None
        return fabric.name, pool.site, f'site "{pool.site}"'

    for partition, path, groups in _spans(context, domain):
        classes = {key[0] for key in groups if isinstance(key, tuple)}
        if len(classes) > 1:
            continue  # said by the check of classes
        places = "; ".join(
            f"{key[2]}: {listing(pools, limit=3)}"
            for key, pools in groups.items()
            if isinstance(key, tuple)
        )
        yield Finding(
            summary=f'partition "{partition}": {listing(map(str, classes))} does not reach from '
            f"each pool to the others ({places})",
            path=path,
            at_key=True,
            severity=Severity.WARNING,
            hint="make a partition for each",
            relies_on=_relies_on(path, "fabric", "machine", "site", "zones", "role"),
        )


@check("GC209", summary="Pools with different GPUs in one partition.")
def partition_mixes_gpus(context: CheckContext) -> Iterator[Finding]:
    """A job that spans pools with different GPUs runs at the speed of the slowest.

    The user of a partition can't know which GPUs a job gets, and the model may not fit into
    them. Give each GPU model a partition of its own.
    """

    def gpus(name: str) -> str | None:
        machine = context.machine(context.pools[name])
        return None if machine is None or machine.gpu_key is None else _gpus(machine.gpu_key)

    for partition, path, groups in _spans(context, gpus):
        if len(_vendors(context, groups)) > 1:
            continue  # said by the check of vendors
        yield Finding(
            summary=f'partition "{partition}" holds pools with different GPUs: {_as_text(groups)}',
            path=path,
            at_key=True,
            severity=Severity.WARNING,
            hint="make a partition for each GPU model",
            relies_on=_relies_on(path, "machine", "role"),
        )


def _gpus(key: tuple[str, int]) -> str:
    return f"{key[1]} x {key[0]}"


def _vendors(context: CheckContext, groups: Mapping[Hashable, list[str]]) -> set[str]:
    """Return the vendors of the real GPUs of some pools."""
    machines = (context.machine(context.pools[n]) for pools in groups.values() for n in pools)
    return {m.gpu.vendor for m in machines if m is not None and m.gpu and not m.simulated}


@check("GC210", summary="NVIDIA and AMD GPUs in one partition.")
def partition_mixes_vendors(context: CheckContext) -> Iterator[Finding]:
    """NCCL and RCCL don't talk to each other: no job can span GPUs of two vendors.

    The smoke test's AllReduce runs over all pools of a partition, so it could never pass.
    """

    def vendor(name: str) -> str | None:
        machine = context.machine(context.pools[name])
        real = machine is not None and machine.gpu is not None and not machine.simulated
        return machine.gpu.vendor if real and machine is not None and machine.gpu else None

    for partition, path, groups in _spans(context, vendor):
        yield Finding(
            summary=f'partition "{partition}" holds GPUs of two vendors: {_as_text(groups)}',
            path=path,
            at_key=True,
            hint="make a partition for each vendor",
            relies_on=_relies_on(path, "machine", "role"),
        )


@check("GC219", summary="A pool that is no whole number of NVLink domains.")
def partial_nvlink_domain(context: CheckContext) -> Iterator[Finding]:
    """Machines whose NVLink spans nodes come in whole domains: 18 nodes of 4 GPUs (NVL72).

    A part of a domain is rarely sold, and a job that fills the pool would span domains unevenly.
    """
    for name, pool in context.pools.items():
        machine, size = context.machine(pool), context.size(name)
        if machine is None or machine.simulated:
            continue
        nodes = machine.domain_nodes
        if nodes == 1 or not size or size % nodes == 0:
            continue
        key = "count" if pool.hosts is None else "hosts"
        below, above = size - size % nodes, size - size % nodes + nodes
        yield Finding(
            summary=f'pool "{name}": {size:,} nodes, but an NVLink domain of {machine.name} is '
            f"{nodes} nodes",
            path=("pools", name, key),
            severity=Severity.WARNING,
            hint=f"take {f'{below:,} or ' if below else ''}{above:,} nodes",
            relies_on=tuple(("pools", name, part) for part in ("machine", "count", "hosts")),
        )


def _domain_nodes(context: CheckContext, pool: Pool) -> int | None:
    """Return the nodes of an NVLink domain; None where it is one node, or not known."""
    machine = context.machine(pool)
    return None if machine is None or machine.domain_nodes == 1 else machine.domain_nodes


def _spanning(context: CheckContext) -> Iterator[tuple[str, Pool, int]]:
    """Yield the pools that run Slurm's jobs on NVLink domains of several nodes."""
    for name, pool in context.pools.items():
        nodes = _domain_nodes(context, pool)
        if nodes is not None and pool.is_compute and context.slurm is not None:
            yield name, pool, nodes


@check("GC548", summary="A block is larger than the NVLink domain of its machines.")
def block_spans_nvlink_domains(context: CheckContext) -> Iterator[Finding]:
    """Jobs that request a block's worth of nodes (`--segment`) count on its NVLink.

    A block of two racks of GB200 NVL72 joins two NVLink domains: a job in it may get nodes of both,
    and its GPUs then communicate over the fabric. Say each domain as a block of its own.
    """
    for name, pool, nodes in _spanning(context):
        relies_on: tuple[PathTuple, ...] = (("pools", name, "machine"),)
        if pool.nodes_per_block is not None and pool.nodes_per_block > nodes:
            path: PathTuple = ("pools", name, "nodes_per_block")
            yield Finding(
                summary=f'pool "{name}": {pool.nodes_per_block} nodes a block, but an NVLink '
                f"domain of {pool.machine} is {nodes}",
                path=path,
                severity=Severity.ERROR if context.exists(pool.site) else Severity.WARNING,
                hint=f"write nodes_per_block: {nodes}",
                relies_on=(*relies_on, path),
            )
        sizes: dict[str, int] = {}
        first: dict[str, PathTuple] = {}
        for group in context.host_groups:
            block = group.entry.block if group.entry is not None else None
            if group.pool == name and block is not None and group.names is not None:
                sizes[block] = sizes.get(block, 0) + len(group.names)
                first.setdefault(block, (*group.path, "block"))
        for block, size in sizes.items():
            if size > nodes:
                yield Finding(
                    summary=f'block "{block}" has {size} hosts, but an NVLink domain of '
                    f"{pool.machine} is {nodes}",
                    path=first[block],
                    hint="give the hosts of each domain a block of their own",
                    relies_on=(*relies_on, ("pools", name, "hosts")),
                )


@check("GC549", summary="It is not specified which nodes share an NVLink domain.")
def nvlink_domains_unknown(context: CheckContext) -> Iterator[Finding]:
    """Slurm keeps jobs in NVLink domains that span nodes when it knows who is in which.

    IMEX, by which their GPUs reach each other's memory, has to know all nodes of its own domain,
    and no other: with a list of several it never gets ready.

    Clouds report it. On bare metal write `nodes_per_block: 18` where the names follow the racks,
    else a `block` for each range of hosts.
    """
    for name, pool, nodes in _spanning(context):
        groups = [group for group in context.host_groups if group.pool == name]
        has_block = any(group.entry is not None and group.entry.block for group in groups)
        size = context.size(name)
        few = size is not None and size <= nodes
        if pool.nodes_per_block or has_block or few or not context.exists(pool.site):
            continue
        yield Finding(
            summary=f'pool "{name}": an NVLink domain of {pool.machine} is {nodes} nodes, and no '
            "host has a block",
            path=("pools", name),
            at_key=True,
            hint=f"add nodes_per_block: {nodes} where the names follow the racks, or "
            "hosts: [{name: ..., block: rack1}, ...]",
            relies_on=(("pools", name), ("scheduler", "topology")),
        )


@check("GC550", summary="GPUs are assigned to processors that don't exist.")
def gpu_socket_missing(context: CheckContext) -> Iterator[Finding]:
    """`gpus` of a pool's `cpu` has the number of a socket for each GPU of a node, from 0 on.

    `nvidia-smi topo -m` shows it as NUMA affinity; with several NUMA nodes a socket (NPS4, SNC)
    `lscpu` says which are whose.
    """
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if pool.cpu is None or pool.cpu.gpus is None or machine is None:
            continue
        gpus, path = pool.cpu.gpus, ("pools", name, "cpu", "gpus")
        count = machine.gpu.count if machine.gpu is not None else 0
        beyond = [socket for socket in gpus if socket >= pool.cpu.sockets]
        if len(gpus) != count:
            summary = f"sockets of {len(gpus)} GPUs, but {machine.name} has {count}"
        elif beyond:
            summary = f"GPUs on socket {beyond[0]}, but the sockets are 0 to {pool.cpu.sockets - 1}"
        else:
            continue
        yield Finding(
            summary=f'pool "{name}": {summary}',
            path=path,
            hint="write the socket of each GPU in the order of `nvidia-smi topo -m`, such as "
            "[0, 0, 0, 0, 1, 1, 1, 1]",
            relies_on=(path, ("pools", name, "cpu", "sockets"), ("pools", name, "machine")),
        )
