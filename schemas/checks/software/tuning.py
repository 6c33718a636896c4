"""Tuning of machines: whether there is hardware of one's own to tune."""

from __future__ import annotations

from collections.abc import Iterator

from ..context import CheckContext
from ..registry import Finding, check

_HARDWARE = ("processors", "pcie", "numa_balancing")


@check("GC225", summary="Tuning of machines that are not one's own.")
def tuning_of_others(context: CheckContext) -> Iterator[Finding]:
    """A virtual machine has no bridges, governors or idle states to set, a container no pages.

    What a cloud's machines need of this is in their images and types. Transparent huge pages are
    the node's own in clouds too.
    """
    for name, pool in context.pools.items():
        site = context.sites.get(pool.site)
        if site is None or (not site.is_cloud and not site.is_made_here):
            continue
        for key in (*_HARDWARE, *(("transparent_hugepages",) if site.is_made_here else ())):
            if getattr(pool.tuning, key) in {"auto", "unmanaged"}:
                continue
            path = ("pools", name, "tuning", key)
            yield Finding(
                summary=f'pool "{name}": {key} can\'t be set on machines of {site.provider}',
                path=path,
                hint=f"remove {key}",
                relies_on=(path, ("pools", name, "site")),
            )
