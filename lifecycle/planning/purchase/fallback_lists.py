"""The fallback lists of a cluster's pools: nodes held, next option, budget left.

Pools are decided on in the order of the spec, each with what those before it leave of the ceilings;
for a pool that is still to come the price of its cheapest option is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ....inventory.hosts import pool_host_names
from ....schemas.cost.pools import HOURS_PER_MONTH, Cost, pool_cost, utilisation_of
from ....schemas.derived.failover import elsewhere
from ....schemas.derived.hostlist import fold
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ....schemas.spec.sites.site import CloudSite
from ....stacks.provider import Provider, PurchaseOption
from ...cluster.cluster import Cluster
from ...operations.repair.queue import set_aside
from ..changes import FallbackListView, OptionState, OptionView
from .decision import (
    NO_WISHES,
    Attempt,
    Blocked,
    Decision,
    Headroom,
    OptionOverrides,
    PoolFallback,
    PurchaseProgress,
    decide,
    options_after,
    progress_by_pool,
    prune_to_spec,
    why_not,
)


def pool_fallbacks(spec: ClusterSpec, providers: Mapping[str, Provider]) -> dict[str, PoolFallback]:
    """Return the fallback lists of bought pools, in spec order. Raises ProviderError."""
    found: dict[str, PoolFallback] = {}
    for name, pool in spec.pools.items():
        provider = providers[pool.site]
        if provider.has_purchase_options:
            nodes = tuple(pool_host_names(name, pool))
            found[name] = PoolFallback(
                pool=name,
                site=pool.site,
                nodes=nodes,
                options=provider.purchase_options(spec, pool.site, name),
                mixed=pool.mixed,
                quorum=pool.quorum,
                elastic=max(0, (pool.most or 0) - len(nodes)),
            )
    return found


class FallbackLists:
    """The fallback lists of a cluster and their one budget. Safe to share between threads."""

    def __init__(
        self,
        cluster: Cluster,
        providers: Mapping[str, Provider],
        wishes: OptionOverrides = NO_WISHES,
    ) -> None:
        """Read what the pools hold; nothing is written."""
        self.fallbacks = pool_fallbacks(cluster.spec, providers)
        self.elsewhere = {
            (pool, site): pool_fallbacks(moved, providers)[pool]
            for pool, site, moved in elsewhere(cluster.spec)
            if pool in self.fallbacks
        }
        """(pool, another site of it) -> its fallback list there."""
        self.wishes = wishes
        recorded = progress_by_pool(cluster.events.read()) if self.fallbacks else {}
        self.progress_by_pool = {
            name: PurchaseProgress(site=fallback.site)
            if name in wishes.again
            else prune_to_spec(fallback, recorded.get(name, PurchaseProgress(site=fallback.site)))
            for name, fallback in self.fallbacks.items()
        }
        self._spec = cluster.spec
        self._aside = set_aside(cluster.spec, cluster.events)
        self._others = _fixed_cost(cluster, self.fallbacks)
        self._lock = threading.RLock()
        self._on: dict[str, dict[str, str]] = {}
        """Pool -> node -> option, of the pools that were decided on."""

    def unknown_overrides(self) -> tuple[Diagnostic, ...]:
        """Return an error for each pool that was named and has no such option."""
        bought = {
            name
            for name, fallback in self.fallbacks.items()
            if any(option.buy_hours is not None for option in fallback.options)
        }
        no_block = [(n, "buys no capacity block") for n in sorted(self.wishes.buy - bought)]
        no_market = self.wishes.again - self.fallbacks.keys()
        return tuple(
            Diagnostic(
                code="GC955",
                severity=Severity.ERROR,
                summary=f'"{name}" {why}: nothing was changed',
                hint="name a pool whose market has such an option; gcluster plan shows them",
            )
            for name, why in [*no_block, *((n, "is no pool of a cloud") for n in sorted(no_market))]
        )

    def decide_all(self) -> dict[str, Decision]:
        """Decide on every pool."""
        return {name: self.decide(name) for name in self.fallbacks}

    def decide(self, pool: str) -> Decision:
        """Decide on one pool, and keep what it then costs from the others."""
        with self._lock:
            fallback, progress = self.fallbacks[pool], self.progress_by_pool[pool]
            headroom, buys = self.headroom(pool), pool in self.wishes.buy
            decision = decide(fallback, progress, headroom=headroom, buys=buys)
            on = options_after(fallback, progress, decision)
            self._on[pool] = {node: option for node, option in on.items() if option}
            return decision

    def usd_per_hour(self, pool: str) -> float | None:
        """Return what a pool's fixed nodes cost as decided; None: a price is unknown."""
        return self.fallbacks[pool].usd_per_hour(self._on[pool], 0.0)

    def has_moved(self, pool: str) -> bool:
        """Return whether any node of a decided pool is not on the first option."""
        fallback = self.fallbacks[pool]
        on = self._on[pool]
        return (
            len(on) < len(fallback.nodes) or set(on.values()) - {fallback.options[0].key} != set()
        )

    def purchased(self, decisions: Mapping[str, Decision], site: str) -> dict[str, str]:
        """Return node -> option for the nodes of a site; "": it shall not be there."""
        found: dict[str, str] = {}
        for name, fallback in self.fallbacks.items():
            if fallback.site == site and name in decisions:
                found |= options_after(fallback, self.progress_by_pool[name], decisions[name])
        return found | {n: "" for n, entry in self._aside.items() if entry.site == site}

    def headroom(self, pool: str) -> tuple[Headroom, ...]:
        """Return what each ceiling leaves for a pool."""
        budget = self._spec.budget
        if budget is None:
            return ()
        monthly = budget.max_usd_per_month
        ceilings = (
            ("budget.max_usd_per_hour", budget.max_usd_per_hour, 1.0),
            (
                "budget.max_usd_per_month",
                None if monthly is None else monthly / HOURS_PER_MONTH,
                utilisation_of(self._spec),
            ),
        )
        return tuple(
            Headroom(ceiling=name, usd_per_hour=most - self._spent(pool, share), elastic=share)
            for name, most, share in ceilings
            if most is not None
        )

    def _spent(self, but: str, share: float) -> float:
        """Return USD/h of all pools but one."""
        return self._others + sum(
            self._reserved(name, share) for name in self.fallbacks if name != but
        )

    def _reserved(self, pool: str, share: float) -> float:
        fallback = self.fallbacks[pool]
        on = self._on.get(pool)
        if on is not None:
            return fallback.usd_per_hour(on, share) or 0.0
        held = self.progress_by_pool[pool].held
        rest = [node for node in fallback.nodes if node not in held]
        options = (
            fallback.usd_per_hour(held | dict.fromkeys(rest, option.key), share)
            for option in fallback.options
        )
        return min((usd for usd in options if usd is not None), default=0.0)


def _fixed_cost(cluster: Cluster, fallbacks: Mapping[str, PoolFallback]) -> float:
    """Return the worst case, in USD/h, of rented pools that have no fallback list."""
    found = 0.0
    for name, pool in cluster.spec.pools.items():
        site = cluster.spec.sites[pool.site]
        if name not in fallbacks and isinstance(site, CloudSite):
            found += pool_cost(pool, site, cluster.catalog).usd_per_hour or 0.0
    return found


def fallback_views(lists: FallbackLists) -> tuple[FallbackListView, ...]:
    """Return every pool's fallback list as `up` would go through it now, site by site."""
    decisions = lists.decide_all()
    return tuple(
        view
        for name, fallback in lists.fallbacks.items()
        if fallback.nodes
        for view in (
            FallbackListView(
                site=fallback.site,
                pool=name,
                count=len(fallback.nodes),
                purchase_options=tuple(
                    _view(lists, fallback, option, decisions[name]) for option in fallback.options
                ),
                mixes=fallback.mixes,
                note=_note(fallback),
            ),
            *_elsewhere(lists, fallback),
        )
    )


def _elsewhere(lists: FallbackLists, here: PoolFallback) -> Iterator[FallbackListView]:
    """Yield the lists of a pool at its other sites: where nodes exist, none is gone through."""
    if lists.progress_by_pool[here.pool].held:
        return
    before = here.site
    for (pool, site), there in lists.elsewhere.items():
        if pool != here.pool:
            continue
        yield FallbackListView(
            site=site,
            pool=pool,
            count=len(there.nodes),
            purchase_options=tuple(
                _option_view(there, option, "after") for option in there.options
            ),
            mixes=there.mixes,
            note=_note(there),
            after=before,
        )
        before = site


def committed_usd(lists: FallbackLists, cost: Cost) -> float | None:
    """Return $/h of what is always there, each pool on the option that it would be on."""
    lists.decide_all()
    rates = [
        lists.usd_per_hour(name)
        if name in lists.fallbacks and lists.has_moved(name)
        else pool.usd_per_hour_now
        for name, pool in cost.pools.items()
    ]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def _view(
    lists: FallbackLists, fallback: PoolFallback, option: PurchaseOption, decision: Decision
) -> OptionView:
    state, nodes, reason = _state(lists, fallback, option, decision)
    return _option_view(fallback, option, state, nodes, reason)


def _option_view(
    fallback: PoolFallback,
    option: PurchaseOption,
    state: OptionState,
    nodes: Sequence[str] = (),
    reason: str = "",
) -> OptionView:
    rate, count = option.usd_per_hour, len(fallback.nodes)
    bought = None if option.buy_hours is None or rate is None else rate * option.buy_hours * count
    return OptionView(
        key=option.key,
        market=option.market,
        zone=option.zone,
        state=state,
        nodes=fold(nodes) if nodes else "",
        usd_per_hour=None if rate is None else rate * count,
        is_bound=option.is_bound,
        usd_at_once=bought,
        buy_hours=option.buy_hours,
        reason=reason,
    )


def _state(
    lists: FallbackLists, fallback: PoolFallback, option: PurchaseOption, decision: Decision
) -> tuple[OptionState, list[str], str]:
    progress = lists.progress_by_pool[fallback.pool]
    held = [node for node in fallback.nodes if progress.held.get(node) == option.key]
    if isinstance(decision, Attempt | Blocked) and decision.option.key == option.key:
        return "next", [*held, *decision.nodes], ""
    if held:
        return "stands", held, ""
    for step in progress.tried:
        if step.option == option.key and step.outcome == "refused":
            return "refused", [], step.reason
    buys = fallback.pool in lists.wishes.buy
    bare = progress if fallback.mixes else msgspec.structs.replace(progress, held={})
    reason = why_not(fallback, bare, option, lists.headroom(fallback.pool), buys=buys)
    return ("skipped", [], reason) if reason else ("after", [], "")


def _note(fallback: PoolFallback) -> str:
    reason = next((option.whole for option in fallback.options if option.whole), "")
    return f"mixed: true has no effect here: {reason}" if fallback.mixed and reason else ""
