"""NVLink domains that span nodes, and the processors that GPUs hang on."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..spec import Pool
from .context import CheckContext
from .registry import Finding, check


def _domain_nodes(context: CheckContext, pool: Pool) -> int | None:
    """Return the nodes of an NVLink domain; None where it is one node, or not known."""
    machine = context.machine(pool)
    if machine is None or machine.gpu is None or machine.nvlink is None:
        return None
    nodes = machine.nvlink.domain_gpus // machine.gpu.count
    return nodes if nodes > 1 else None


def _spanning(context: CheckContext) -> Iterator[tuple[str, Pool, int]]:
    """Yield the pools that run Slurm's jobs on NVLink domains of several nodes."""
    for name, pool in context.pools.items():
        nodes = _domain_nodes(context, pool)
        if nodes is not None and pool.role == "compute" and context.slurm is not None:
            yield name, pool, nodes


@check("GC548", summary="A block is larger than the NVLink domain of its machines.")
def block_of_several_domains(context: CheckContext) -> Iterator[Finding]:
    """Jobs that ask for a block's worth of nodes (`--segment`) count on its NVLink.

    A block of two racks of GB200 NVL72 joins two NVLink domains: a job in it may get nodes of both,
    and its GPUs then talk over the fabric. Say each domain as a block of its own.
    """
    for name, pool, nodes in _spanning(context):
        relies_on: tuple[PathTuple, ...] = (("pools", name, "machine"),)
        if pool.nodes_per_block is not None and pool.nodes_per_block > nodes:
            path: PathTuple = ("pools", name, "nodes_per_block")
            yield Finding(
                summary=f'pool "{name}": {pool.nodes_per_block} nodes a block, but an NVLink '
                f"domain of {pool.machine} is {nodes}",
                path=path,
                severity=Severity.WARNING,
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
                    severity=Severity.WARNING,
                    hint="give the hosts of each domain a block of their own",
                    relies_on=(*relies_on, ("pools", name, "hosts")),
                )


@check("GC549", summary="Nobody says which nodes share an NVLink domain.")
def domains_unknown(context: CheckContext) -> Iterator[Finding]:
    """Slurm keeps jobs in NVLink domains that span nodes when it knows who is in which.

    Clouds tell it. On bare metal write `nodes_per_block: 18` where the names follow the racks, else
    a `block` for each range of hosts.
    """
    for name, pool, nodes in _spanning(context):
        if context.slurm is None or context.slurm.topology.plugin == "none":
            continue
        groups = [group for group in context.host_groups if group.pool == name]
        said = any(group.entry is not None and group.entry.block for group in groups)
        size = context.size(name)
        few = size is not None and size <= nodes
        if pool.nodes_per_block or said or few or not context.exists(pool.site):
            continue
        yield Finding(
            summary=f'pool "{name}": an NVLink domain of {pool.machine} is {nodes} nodes, and no '
            "host says its block",
            path=("pools", name),
            at_key=True,
            severity=Severity.WARNING,
            hint=f"add nodes_per_block: {nodes} where the names follow the racks, or "
            "hosts: [{name: ..., block: rack1}, ...]",
            relies_on=(("pools", name), ("scheduler", "topology")),
        )


@check("GC550", summary="GPUs are said to hang on processors that are not there.")
def sockets_of_gpus(context: CheckContext) -> Iterator[Finding]:
    """`gpus` of a pool's `cpu` has the number of a socket for each GPU of a node, from 0 on.

    `nvidia-smi topo -m` shows it as NUMA affinity; with several NUMA nodes a socket (NPS4, SNC)
    `lscpu` says which are whose.
    """
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if pool.cpu is None or pool.cpu.gpus is None or machine is None:
            continue
        said, path = pool.cpu.gpus, ("pools", name, "cpu", "gpus")
        count = machine.gpu.count if machine.gpu is not None else 0
        beyond = [socket for socket in said if socket >= pool.cpu.sockets]
        if len(said) != count:
            summary = f"sockets of {len(said)} GPUs, but {machine.name} has {count}"
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
