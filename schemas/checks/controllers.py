"""Several controllers: state that Slurm's share, a majority and one address for Kubernetes'."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..spec import ObjectStorage, ScratchStorage
from .context import CheckContext
from .registry import Finding, check


def controller_pools(context: CheckContext) -> list[str]:
    """Return the pools whose hosts are controllers."""
    return [name for name, pool in context.pools.items() if pool.role == "controller"]


def controller_hosts(context: CheckContext) -> int | None:
    """Return how many hosts are controllers; None when that isn't known."""
    sizes = [context.size(name) for name in controller_pools(context)]
    return None if None in sizes else sum(size or 0 for size in sizes)


_HOSTS = tuple(("pools", "*", key) for key in ("role", "hosts", "count"))


@check("GC529", summary="The state that controllers share lies where they can't share it.")
def state_not_shared(context: CheckContext) -> Iterator[Finding]:
    """Slurm's backup controller takes over with the state that the first one wrote.

    So `state_save` is a file system that every controller mounts: NFS, Lustre or GPFS. Local disks
    and buckets are none. Served by a controller itself it goes away with that controller.
    """
    name = context.slurm.state_save if context.slurm is not None else None
    storage = context.storage.get(name or "")
    if name is None or storage is None:
        return
    path: PathTuple = ("scheduler", "state_save")
    needs = (path, ("storage", name), ("pools", "*", "role"), ("pools", "*", "site"))
    if isinstance(storage, ScratchStorage | ObjectStorage):
        kind = "each node's own disks" if isinstance(storage, ScratchStorage) else "a bucket"
        yield Finding(
            summary=f'controllers can\'t share their state on "{name}": it is {kind}',
            path=path,
            hint="name an NFS, Lustre or GPFS storage",
            relies_on=needs,
        )
        return
    controllers = controller_pools(context)
    mounting = set(context.mounts.mounted_by(name))
    for pool in controllers:
        if pool not in mounting and context.mounts.is_certain(name):
            yield Finding(
                summary=f'controller pool "{pool}" does not mount "{name}", where the state is',
                path=path,
                hint=f"add {pool} to the pools of {name}",
                relies_on=needs,
            )
    server = context.mounts.server(name)
    if server in controllers and (controller_hosts(context) or 0) > 1:
        yield Finding(
            summary=f'controller pool "{server}" serves "{name}" itself: the shared state goes '
            "away with it",
            path=path,
            severity=Severity.WARNING,
            hint="share the state on a server that is no controller",
            relies_on=(*needs, *_HOSTS),
        )


@check("GC530", summary="The number of Kubernetes control planes is even.")
def even_control_planes(context: CheckContext) -> Iterator[Finding]:
    """More than half of etcd's members have to work, so their number is odd.

    Four bear the loss of one, like three, and two bear none: the even one only adds a part that
    can fail.
    """
    kubernetes = context.kubernetes
    hosts = controller_hosts(context)
    if kubernetes is None or kubernetes.control_plane != "self" or not hosts or hosts % 2:
        return
    pool = controller_pools(context)[-1]
    key = "count" if context.pools[pool].hosts is None else "hosts"
    yield Finding(
        summary=f"{hosts:,} control planes bear the loss of {hosts // 2 - 1:,}, "
        f"as {hosts - 1:,} would",
        path=("pools", pool, key),
        hint=f"make it {hosts - 1} or {hosts + 1}",
        relies_on=(*_HOSTS, ("scheduler", "control_plane")),
    )


@check("GC531", summary="Several control planes have no address in common.")
def control_planes_without_address(context: CheckContext) -> Iterator[Finding]:
    """Nodes ask one address, and it moves to a control plane that works.

    Clouds have load balancers for that. On bare metal name a free address of their network:
    `virtual_address: {address: 10.20.0.10}`.
    """
    kubernetes = context.kubernetes
    hosts = controller_hosts(context)
    if kubernetes is None or kubernetes.control_plane != "self" or not hosts or hosts == 1:
        return
    sites = {context.pools[pool].site for pool in controller_pools(context)}
    known = [context.sites[site] for site in sites if site in context.sites]
    if kubernetes.virtual_address is None and not all(s.makes_machines for s in known):
        yield Finding(
            summary=f"{hosts:,} control planes on bare metal have no address in common",
            path=("scheduler",),
            at_key=True,
            hint="add virtual_address: {address: a free one of their network}",
            relies_on=(*_HOSTS, ("scheduler", "virtual_address"), ("scheduler", "control_plane")),
        )
