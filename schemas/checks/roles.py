"""The roles a cluster needs: one controller and something that computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.schemas.checks.registry import Finding, check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcluster.schemas.checks.context import CheckContext

_ROLES = ("pools", "*", "role")


@check("GC501", summary="No pool is the controller.")
def no_controller(context: CheckContext) -> Iterator[Finding]:
    """Slurm needs one controller host.

    Give one pool `role: controller`; it needs no GPU and no machine type.
    """
    if not context.pools or any(pool.role == "controller" for pool in context.pools.values()):
        return
    site = next(iter(context.sites), "SITE")
    yield Finding(
        summary="no pool has the role controller: Slurm needs one",
        path=("pools",),
        at_key=True,
        hint=f"add a pool such as head: {{site: {site}, role: controller}}",
        relies_on=(_ROLES,),
    )


@check("GC502", summary="More or less than one controller host.")
def one_controller(context: CheckContext) -> Iterator[Finding]:
    """Exactly one host is the controller.

    Backup controllers share their state directory over a network file system; this version does
    not build that yet.
    """
    controllers = [name for name, pool in context.pools.items() if pool.role == "controller"]
    for name in controllers[1:]:
        yield Finding(
            summary=f'pool "{name}" is a second controller: first is "{controllers[0]}"; '
            "backup controllers are not built yet in this version",
            path=("pools", name, "role"),
            hint="give one pool the role controller",
        )
    for name in controllers:
        pool = context.pools[name]
        size = context.size(name)
        if size is None or size == 1 or (not size and pool.hosts is not None):
            continue
        key = "count" if pool.hosts is None else "hosts"
        why = "; backup controllers are not built yet in this version" if size > 1 else ""
        yield Finding(
            summary=f'controller pool "{name}" has {size:,} hosts, it must be one{why}',
            path=("pools", name, key),
            hint="write count: 1" if key == "count" else "name one host",
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
