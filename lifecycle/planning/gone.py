"""Which nodes of a cloud a plan costs: in its program they have other names, or stand in groups.

What a resource buys is known offline, by the spec that was applied and by the one that is to be.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...schemas.control_planes import managed_pools
from ...schemas.spec import ClusterSpec
from ...stacks.provider import ResourceChange
from ..sites import OpenSite
from .changes import Gone


def gone_with(
    site: OpenSite, changes: Iterable[ResourceChange], applied: ClusterSpec | None
) -> tuple[Gone, ...]:
    """Return the nodes that the spec drops, and those whose own resource goes or is made anew.

    Nodes that a cloud's control plane runs are told by their machines' ids (`leaving_nodes`).

    Args:
        site: has the spec that is to be applied.
        changes: what its apply would do.
        applied: the spec as it was applied; None: nothing was, so nothing goes.

    Raises:
        ProviderError: the spec that was applied can't be planned.
    """
    provider, wanted = site.provider, site.context.spec
    if applied is None or site.name not in applied.sites or not provider.has_purchase_options:
        return ()
    kept = {host.name for host in provider.planned_hosts(wanted, site.name)}
    found = {
        host.name: Gone(name=host.name, pool=host.pool, replaced=False)
        for host in provider.planned_hosts(applied, site.name)
        if host.name not in kept
    }
    ends = {c.resource.name: c.effect for c in changes if c.effect in {"replace", "delete"}}
    bought = provider.purchases(applied, site.name) if ends else {}
    for name in ends.keys() & bought.keys():
        for node in bought[name].nodes:
            found.setdefault(node, Gone(name=node, pool=bought[name].pool, replaced=node in kept))
    run = managed_pools(applied) | managed_pools(wanted)
    return tuple(node for _, node in sorted(found.items()) if node.pool not in run)
