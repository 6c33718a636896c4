"""The ladders of a cluster's pools: where each stands, what comes next, and what the budget leaves.

Pools are decided on in the order of the spec, each with what those before it leave of the ceilings;
for a pool that is still to come the price of its cheapest rung is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ...inventory.hosts import pool_host_names
from ...schemas.cost.pools import HOURS_PER_MONTH, pool_cost, utilisation_of
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec
from ...schemas.spec.sites.site import CloudSite
from ...stacks.provider import Provider
from ..repair.queue import set_aside
from ..state.rungs import Walk, walks
from .rung import Decision, PoolLadder, Room, at_home, decide, rungs_after

if TYPE_CHECKING:
    from ..cluster import Cluster


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for by a pool's name."""

    buy: frozenset[str] = frozenset()
    """Pools whose capacity block may be bought."""
    again: frozenset[str] = frozenset()
    """Pools that shall be bought anew from the first rung, wherever they stand."""


NO_WISHES = Wishes()


def pool_ladders(spec: ClusterSpec, providers: Mapping[str, Provider]) -> dict[str, PoolLadder]:
    """Return the ladders of the pools that are bought, in spec order. Raises ProviderError."""
    found: dict[str, PoolLadder] = {}
    for name, pool in spec.pools.items():
        provider = providers[pool.site]
        if provider.has_purchase_options:
            nodes = tuple(pool_host_names(name, pool))
            found[name] = PoolLadder(
                pool=name,
                site=pool.site,
                nodes=nodes,
                rungs=provider.purchase_options(spec, pool.site, name),
                mixed=pool.mixed,
                quorum=pool.quorum,
                elastic=max(0, (pool.most or 0) - len(nodes)),
            )
    return found


class Ladders:
    """All ladders of a cluster, and one purse for them. Safe to share between sites' threads."""

    def __init__(
        self, cluster: Cluster, providers: Mapping[str, Provider], wishes: Wishes = NO_WISHES
    ) -> None:
        """Read where the pools stand; nothing is written."""
        self.ladders = pool_ladders(cluster.spec, providers)
        self.wishes = wishes
        recorded = walks(cluster.events.read()) if self.ladders else {}
        self.walks = {
            name: Walk(site=ladder.site)
            if name in wishes.again
            else at_home(ladder, recorded.get(name, Walk(site=ladder.site)))
            for name, ladder in self.ladders.items()
        }
        self._spec = cluster.spec
        self._aside = set_aside(cluster.spec, cluster.events)
        self._others = _others(cluster, self.ladders)
        self._lock = threading.RLock()
        self._on: dict[str, dict[str, str]] = {}
        """Pool -> node -> rung, of the pools that were decided on."""

    def unknown_wishes(self) -> tuple[Diagnostic, ...]:
        """Return an error for each pool that was named and has no such ladder."""
        bought = {
            name
            for name, ladder in self.ladders.items()
            if any(rung.buy_hours is not None for rung in ladder.rungs)
        }
        no_block = [(n, "buys no capacity block") for n in sorted(self.wishes.buy - bought)]
        no_market = self.wishes.again - self.ladders.keys()
        return tuple(
            Diagnostic(
                code="GC955",
                severity=Severity.ERROR,
                summary=f'"{name}" {why}: nothing was changed',
                hint="name a pool whose market has such a rung; gcluster plan shows them",
            )
            for name, why in [*no_block, *((n, "is no pool of a cloud") for n in sorted(no_market))]
        )

    def decide_all(self) -> dict[str, Decision]:
        """Decide on every pool."""
        return {name: self.decide(name) for name in self.ladders}

    def decide(self, pool: str) -> Decision:
        """Decide on one pool, and keep what it then costs from the others."""
        with self._lock:
            ladder, walk = self.ladders[pool], self.walks[pool]
            rooms, buys = self.rooms(pool), pool in self.wishes.buy
            decision = decide(ladder, walk, rooms=rooms, buys=buys)
            on = rungs_after(ladder, walk, decision)
            self._on[pool] = {node: rung for node, rung in on.items() if rung}
            return decision

    def usd_per_hour(self, pool: str) -> float | None:
        """Return what a pool's fixed nodes cost as decided; None: a price is unknown."""
        return self.ladders[pool].usd_per_hour(self._on[pool], 0.0)

    def has_moved(self, pool: str) -> bool:
        """Say whether any node of a pool that was decided on is not on the first rung."""
        ladder = self.ladders[pool]
        on = self._on[pool]
        return len(on) < len(ladder.nodes) or set(on.values()) - {ladder.rungs[0].key} != set()

    def taken(self, decisions: Mapping[str, Decision], site: str) -> dict[str, str]:
        """Return node -> rung for the nodes of a site; "": it shall not be there."""
        found: dict[str, str] = {}
        for name, ladder in self.ladders.items():
            if ladder.site == site and name in decisions:
                found |= rungs_after(ladder, self.walks[name], decisions[name])
        return found | {n: "" for n, entry in self._aside.items() if entry.site == site}

    def rooms(self, pool: str) -> tuple[Room, ...]:
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
            Room(ceiling=name, usd_per_hour=most - self._spent(pool, share), elastic=share)
            for name, most, share in ceilings
            if most is not None
        )

    def _spent(self, but: str, share: float) -> float:
        """Return USD/h of all pools but one."""
        return self._others + sum(
            self._reserved(name, share) for name in self.ladders if name != but
        )

    def _reserved(self, pool: str, share: float) -> float:
        ladder = self.ladders[pool]
        on = self._on.get(pool)
        if on is not None:
            return ladder.usd_per_hour(on, share) or 0.0
        standing = self.walks[pool].standing
        rest = [node for node in ladder.nodes if node not in standing]
        options = (
            ladder.usd_per_hour(standing | dict.fromkeys(rest, rung.key), share)
            for rung in ladder.rungs
        )
        return min((usd for usd in options if usd is not None), default=0.0)


def _others(cluster: Cluster, ladders: Mapping[str, PoolLadder]) -> float:
    """Return the worst case, in USD/h, of rented pools that have no ladder."""
    found = 0.0
    for name, pool in cluster.spec.pools.items():
        site = cluster.spec.sites[pool.site]
        if name not in ladders and isinstance(site, CloudSite):
            found += pool_cost(pool, site, cluster.catalog).usd_per_hour or 0.0
    return found
