"""The roles a cluster needs: one controller and something that computes."""

from __future__ import annotations

from collections.abc import Iterator

from .context import CheckContext
from .registry import Finding, check

_ROLES = ("pools", "*", "role")


@check("GC501", summary="No pool is the controller.")
def no_controller(context: CheckContext) -> Iterator[Finding]:
    """The scheduler needs a controller host.

    Give one pool `role: controller`; it needs no GPU and no machine type. Only where a cloud runs
    the control plane of Kubernetes there is none.
    """
    if not context.pools or any(pool.role == "controller" for pool in context.pools.values()):
        return
    kubernetes = context.kubernetes
    if kubernetes is not None and kubernetes.control_plane != "self":
        return
    site = next(iter(context.sites), "SITE")
    who = "Slurm" if kubernetes is None else "Kubernetes"
    yield Finding(
        summary=f"no pool has the role controller: {who} needs one",
        path=("pools",),
        at_key=True,
        hint=f"add a pool such as head: {{site: {site}, role: controller}}",
        relies_on=(_ROLES, ("scheduler", "type"), ("scheduler", "control_plane")),
    )


@check("GC502", summary="More or less than one controller host.")
def one_controller(context: CheckContext) -> Iterator[Finding]:
    """One host is the controller; Slurm's backup controllers need `state_save`.

    Of several controllers one works, and another takes over with the state that it reads from a
    file system they share: name that storage as `scheduler.state_save`. Under Kubernetes their
    number is odd.
    """
    controllers = [name for name, pool in context.pools.items() if pool.role == "controller"]
    alone = context.slurm is not None and context.slurm.state_save is None
    saved = ("scheduler", "state_save")
    for name in controllers[1:] if alone else ():
        path = ("pools", name, "role")
        yield Finding(
            summary=f'pool "{name}" is a second controller: first is "{controllers[0]}", and the '
            "spec names no state_save for them to share",
            path=path,
            hint="give one pool the role controller, or add state_save: the storage they share",
            relies_on=(path, saved),
        )
    for name in controllers:
        pool = context.pools[name]
        size = context.size(name)
        if size is None or size == 1 or (not size and pool.hosts is not None):
            continue
        if size and not alone:
            continue
        key = "count" if pool.hosts is None else "hosts"
        why = ", as there is no state_save for them to share" if size else ""
        yield Finding(
            summary=f'controller pool "{name}" has {size:,} hosts, it must be one{why}',
            path=("pools", name, key),
            hint="write count: 1" if key == "count" else "name one host",
            relies_on=(("pools", name, key), saved),
        )


@check("GC503", summary="No pool computes.")
def no_compute(context: CheckContext) -> Iterator[Finding]:
    """A cluster needs at least one pool that runs jobs.

    A pool without `role` is a compute pool.
    """
    if context.pools and all(pool.role != "compute" for pool in context.pools.values()):
        yield Finding(
            summary="no compute pool: nothing would run jobs",
            path=("pools",),
            at_key=True,
            hint="add a pool with a machine type; its role is compute unless it says otherwise",
            relies_on=(_ROLES,),
        )
