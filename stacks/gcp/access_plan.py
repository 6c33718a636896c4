"""Who the machines of a Google Cloud site are, and what they may do (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...schemas.spec import GcpSite
from .facts import facts
from .pools import PoolPlan


class AccessPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Identities of a site: service accounts."""

    node: str | None
    """E-mail of one that exists; then nothing is granted to it."""
    node_roles: tuple[str, ...]
    burst: str | None
    needs_burst: bool
    """Whether a burst agent's identity is to be made: a pool is elastic, and none is named."""
    burst_permissions: tuple[str, ...]


def access(site: GcpSite, pools: Sequence[PoolPlan]) -> AccessPlan:
    """Return the identities of a site."""
    elastic = any(pool.is_elastic for pool in pools)
    return AccessPlan(
        node=site.roles.node,
        node_roles=tuple(facts().node_roles),
        burst=site.roles.burst,
        needs_burst=elastic and site.roles.burst is None,
        burst_permissions=tuple(facts().burst_permissions),
    )
