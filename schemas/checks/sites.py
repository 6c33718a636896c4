"""Pools and the sites they come from."""

from __future__ import annotations

from collections.abc import Iterator

from ..suggest import listing
from .context import CheckContext
from .registry import Finding, check


@check("GC101", summary="A pool names a site that is not declared.")
def unknown_site(context: CheckContext) -> Iterator[Finding]:
    """A pool's `site` must be one of the names under `sites`.

    Every pool takes its machines from one site. Declare the site under `sites`, or correct the
    name.
    """
    declared = context.declared_sites
    if declared is None:
        return
    hint = f"declared sites: {listing(declared)}" if declared else ""
    for name, pool in context.pools.items():
        if pool.site in declared:
            continue
        meant = context.suggest(pool.site, declared)
        question = f': did you mean "{meant}"?' if meant else ""
        yield Finding(
            summary=f'pool "{name}" names an unknown site "{pool.site}"{question}',
            path=("pools", name, "site"),
            hint=hint,
            meant=meant,
        )
