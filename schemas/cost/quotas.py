"""What a spec takes of a cloud account's quotas when all its machines run at once.

What an account has is known to the cloud alone, and mostly none of it to begin with: so this is
shown, by `gcluster validate` after "ok", and not a finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from ..catalog import Catalog, Market
from ..derived.failover import elsewhere
from ..spec import CloudSite, ClusterSpec, Option, Pool, Site


class QuotaNeed(msgspec.Struct, frozen=True, kw_only=True):
    """An allowance that machines count against, and how much of it they take at most."""

    provider: str
    region: str
    code: str
    """As the cloud's quota page calls it: L-417A185B, NVIDIA_H100_GPUS."""
    amount: int
    """In `unit`."""
    unit: Literal["vcpu", "gpu", "node"]
    pools: tuple[str, ...]


_NONE: Mapping[str, int] = MappingProxyType({})


def quota_needs(
    spec: ClusterSpec, catalog: Catalog, there: Mapping[str, int] = _NONE
) -> tuple[QuotaNeed, ...]:
    """Return the quotas that the largest size of every pool needs, in the order of the pools.

    A pool that may be bought in several markets needs the quota of each: whichever has room gives
    all of it. Quotas that the catalog does not know are left out.

    Args:
        spec: what is requested.
        catalog: which quota a machine counts against.
        there: pool -> machines that exist already; what they take is not needed once more.
    """
    needs: dict[tuple[str, str, str], QuotaNeed] = {}
    for name, pool in spec.pools.items():
        site = spec.sites.get(pool.site)
        machine = None if pool.machine is None else catalog.machines.get(pool.machine)
        if not isinstance(site, CloudSite) or machine is None:
            continue
        markets = _markets(pool)
        for quota in machine.quotas:
            amount = quota.per_node * max(0, _most(pool) - there.get(name, 0))
            if not amount or markets.isdisjoint(quota.markets):
                continue
            key = site.provider, site.region, quota.code
            so_far = needs.get(key)
            needs[key] = QuotaNeed(
                provider=site.provider,
                region=site.region,
                code=quota.code,
                unit=quota.unit,
                amount=amount + (so_far.amount if so_far else 0),
                pools=(*(so_far.pools if so_far else ()), name),
            )
    return tuple(needs.values())


def failover_needs(spec: ClusterSpec, catalog: Catalog) -> tuple[QuotaNeed, ...]:
    """Return the quotas that a pool needs at each of its other sites, with all else that is there.

    `spec` and `catalog` as above; a pool is at one site at a time.
    """
    return tuple(
        need
        for pool, site, moved in elsewhere(spec)
        for need in quota_needs(moved, catalog)
        if pool in need.pools and (need.provider, need.region) == _place(moved.sites[site])
    )


def _place(site: Site) -> tuple[str, str]:
    return site.provider, getattr(site, "region", "")


def still_needed(
    spec: ClusterSpec, catalog: Catalog, need: QuotaNeed, there: Mapping[str, int]
) -> int:
    """Return how much of a quota the machines take that don't exist yet; `there` as above."""
    left = quota_needs(spec, catalog, there)
    key = need.provider, need.region, need.code
    return sum(n.amount for n in left if (n.provider, n.region, n.code) == key)


_WORDS: Mapping[str, Market] = {
    "on-demand": "on-demand",
    "spot": "spot",
    "flex-start": "flex-start",
    "reservation": "reservation",
    "capacity-block": "capacity-block",
}


def _markets(pool: Pool) -> set[Market]:
    """Return the markets that a pool may be bought in."""
    written = [option.market if isinstance(option, Option) else option for option in pool.market]
    return {_WORDS[word] for word in written or ["on-demand"] if word in _WORDS}


def _most(pool: Pool) -> int:
    """Return how many machines there may be: one where a controller or login says no count."""
    return 1 if pool.most is None else pool.most
