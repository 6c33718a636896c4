"""Other sites that a pool may be made at: what it is there, and the spec with it there."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..spec import ClusterSpec, FailoverSite, Option, Pool

_ANYWHERE = frozenset({"cluster", "spread", "none"})
"""Placements that are no group's name."""


def failover_sites(pool: Pool) -> Iterator[FailoverSite]:
    """Yield the other sites that a pool may be made at, as written."""
    for each in pool.failover:
        yield FailoverSite(site=each) if isinstance(each, str) else each


def at_site(pool: Pool, other: FailoverSite) -> Pool:
    """Return a pool as it is at another of its sites; it has no others there.

    What belongs to one place is left behind: zones, an image, a placement group, reservations.
    """
    portable = [way for way in pool.market if not _is_bound(way)]
    return msgspec.structs.replace(
        pool,
        site=other.site,
        machine=other.machine or pool.machine,
        fabric=None if other.machine else pool.fabric,
        market=other.market or portable,
        zones=other.zones,
        image=other.image,
        placement=other.placement or (pool.placement if pool.placement in _ANYWHERE else None),
        failover=[],
    )


def elsewhere(spec: ClusterSpec) -> Iterator[tuple[str, str, ClusterSpec]]:
    """Yield (pool, another site of it, the spec with the pool there), in the order to try them."""
    for name, pool in spec.pools.items():
        for other in failover_sites(pool):
            pools = {**spec.pools, name: at_site(pool, other)}
            yield name, other.site, msgspec.structs.replace(spec, pools=pools)


def _is_bound(way: str | Option) -> bool:
    """Say whether a way to buy machines is capacity that was reserved in one place."""
    return isinstance(way, Option) and (way.reservation or way.capacity_block) is not None
