"""Rented nodes and spending, for the policy; and which purchase options the budget allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

import msgspec

from ..policy import Rented, Rule, Situation
from ..policy.commitments import Commitments
from ..policy.room import Place, RoomRequest, find
from ..policy.rule import PurchaseOption
from .decide import ElasticPool
from .ledger import BurstFold
from .scheduler import Seen


def decision_context(
    rule: Rule, always: Collection[str], fold: BurstFold, seen: Seen, promise_of: str = ""
) -> Situation:
    """Return the context for a decision about a partition's spill.

    Args:
        rule: the spill.
        always: nodes of its pool that always exist.
        fold: the ledger.
        seen: the scheduler's view.
        promise_of: partition whose promise is passed on; "": none.
    """
    return Situation(
        now=seen.now,
        rented=(*_nodes(rule, always, fold, seen), *_pending_jobs(rule, fold, seen)),
        spent_today_usd=fold.spent_today(rule.target.pool, seen.now),
        promise=fold.promises.get(promise_of),
    )


def affordable_options(
    rules: Collection[Rule],
    pool: ElasticPool,
    fold: BurstFold,
    seen: Seen,
    *,
    nodes: int,
    seconds: float | None,
) -> tuple[tuple[str, ...], str]:
    """Return the options that every ceiling allows for new nodes, else ((), why not).

    It is checked before each purchase, also for jobs that were not moved.
    """
    purchase_options = pool.purchase_options
    for rule in (_priced(each, pool) for each in rules):
        context = decision_context(rule, (), fold, seen)
        taken = tuple(each for each in context.rented if not each.node.startswith(_JOB))
        busy = tuple(Rented(node=e.node, usd_per_hour=e.usd_per_hour, until=e.until) for e in taken)
        commitments = Commitments.of(
            Situation(now=seen.now, rented=busy, spent_today_usd=context.spent_today_usd)
        )
        place = find(rule, commitments, seen.now, RoomRequest(nodes, rule.longest(seconds)), None)
        if not isinstance(place, Place):
            return (), place[0].text
        if not rule.target.is_free:
            allowed = rule.options_up_to(place.cap)
            purchase_options = tuple(option for option in purchase_options if option in allowed)
    return purchase_options, "" if purchase_options else "no way to buy it stays below the ceilings"


def _priced(rule: Rule, pool: ElasticPool) -> Rule:
    """Return a rule with current prices: the provider may charge more than the catalog."""
    if rule.target.is_free and not any(pool.prices.values()):
        return rule
    known = {option.key: option for option in rule.target.purchase_options}
    purchase_options = tuple(
        msgspec.structs.replace(
            known.get(key, PurchaseOption(key=key, usd_per_hour=None)),
            usd_per_hour=pool.prices.get(key),
        )
        for key in pool.purchase_options
    )
    target = msgspec.structs.replace(rule.target, purchase_options=purchase_options)
    return msgspec.structs.replace(rule, target=target)


_JOB = "job "


def _nodes(rule: Rule, always: Collection[str], fold: BurstFold, seen: Seen) -> Iterator[Rented]:
    busy_until = {node: job.ends for job in seen.jobs for node in job.nodes}
    for record in fold.nodes.values():
        if record.pool != rule.target.pool or not record.is_live:
            continue
        node = seen.nodes.get(record.node)
        idle = node.idle_since if node is not None and record.step == "joined" else None
        until = record.until
        if idle is not None:
            until = idle + rule.target.idle
        elif (ends := busy_until.get(record.node)) is not None:
            until = ends + rule.target.idle
        yield Rented(
            node=record.node, usd_per_hour=record.usd_per_hour, until=until, idle_since=idle
        )
    for name in always:
        node = seen.nodes.get(name)
        if name not in fold.nodes and node is not None and node.state == "here":
            yield Rented(node=name, until=None, idle_since=node.idle_since, always=True)


def _pending_jobs(rule: Rule, fold: BurstFold, seen: Seen) -> Iterator[Rented]:
    """Yield the possible cost of jobs that were moved and whose nodes are not requested yet."""
    for each in seen.jobs:
        move = fold.moved.get(each.job.id)
        if move is None or move.to == move.home or each.nodes or each.partition != move.to:
            continue
        for number in range(move.nodes if move.home == rule.partition else each.job.nodes):
            yield Rented(
                node=f"{_JOB}{each.job.id} {number}",
                usd_per_hour=move.usd_per_hour,
                until=move.until,
            )


FRESH_S = 300.0
"""Seconds for which an answer counts: spot prices move by the hour (EC2 User Guide, "Spot Instances
pricing history"), and lists of prices by the month."""


class Prices:
    """Prices by pool. Filled in the background, so that a slow price list delays nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without prices."""
        self._clock = clock
        self._prices: dict[str, tuple[float, dict[str, float]]] = {}

    def is_fresh(self, pool: str) -> bool:
        """Return whether a pool's prices were queried recently."""
        cached = self._prices.get(pool)
        return cached is not None and self._clock() - cached[0] < FRESH_S

    def learn(self, pool: str, usd_per_hour: dict[str, float]) -> None:
        """Store option -> USD per hour of one node, from the provider's current prices."""
        self._prices[pool] = (self._clock(), usd_per_hour)

    def of(self, pool: ElasticPool) -> ElasticPool:
        """Return a pool with the higher of the catalog's and the provider's price."""
        _, prices = self._prices.get(pool.pool, (0.0, {}))
        dearer = {k: max(usd, pool.prices.get(k, 0.0)) for k, usd in prices.items() if usd > 0}
        return msgspec.structs.replace(pool, prices={**pool.prices, **dearer})
