"""The agent's loop: poll, decide, and run calls concurrently, so that none waits for another.

The order within each step is what survives a kill: first the record, then the call, then its
result. A call without a recorded result is repeated, with the same names and the same token.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from functools import partial

import msgspec

from .....schemas.derived.hostlist import fold as folded
from .....stacks.provider import ProviderError
from ....cluster.outcome import LifecycleError
from ....state import BurstStepped, JobMoved
from ..policy import Rule
from .budget import Prices, affordable_options
from .calls import AgentEvent, CallPool
from .decide import (
    Act,
    ElasticPool,
    Forget,
    GiveUp,
    GoOn,
    Joined,
    Launch,
    Leave,
    Release,
    acts,
    grouped,
)
from .ledger import NO_OPTION, BurstLedger
from .operations import NodeOperations
from .scheduler import MARK, BurstScheduler, SchedulerRefused, SchedulerSilent, Seen
from .setup import out_of_spec
from .spill import Spilling, arrived, closed_reason, judge
from .work import ProviderWork

MOVE_AGAIN_S = 120.0
"""Seconds until a job is moved again whose move the scheduler refused."""
LOGGED_AT_ONCE = 400
"""Jobs that get a message in one round: each is a change of the scheduler's records."""
SOON_S = 2.0
"""Seconds between two polls while nodes are being created: these steps take seconds."""


class Agent:
    """The loop between a scheduler and the providers of its rented nodes."""

    def __init__(
        self,
        *,
        pools: Collection[ElasticPool],
        spills: Collection[Spilling],
        always: Collection[str],
        scheduler: BurstScheduler,
        work: ProviderWork,
        ledger: BurstLedger,
        call_pool: CallPool,
        say: Callable[[AgentEvent], None],
        token: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        """Set the parts; nothing is queried yet."""
        self._pools = tuple(pools)
        self._spills = tuple(spills)
        self._always = frozenset(always)
        self._scheduler = scheduler
        self._work = work
        self._ledger = ledger
        self._call_pool = call_pool
        self._report = say
        self._token = token
        self._logged: dict[str, str] = {}
        self._stay: dict[str, tuple[float, str]] = {}
        """Job -> when the scheduler refused to move it, and why."""
        self._making = NodeOperations(
            scheduler=scheduler, work=work, ledger=ledger, call_pool=call_pool, say=say
        )
        self._prices = Prices()
        self._on_the_way = False

    def round(self) -> bool:
        """Poll once and act; return whether anything was done. Long calls run in the background.

        Raises:
            LifecycleError: the lock was lost: nothing may be written any more.
        """
        try:
            return self._round()
        except SchedulerSilent as error:
            self._report(AgentEvent(what="silent", reason=str(error)))
            return False

    def once(self, pause: Callable[[], None] = lambda: time.sleep(0.2)) -> bool:
        """Run one round, and wait for the calls that it began; return whether it did anything.

        Raises:
            SchedulerSilent: it doesn't respond, and no other round follows.
            LifecycleError: as `round`.
        """
        did = self._round()
        while self._call_pool.busy():
            pause()
        self._call_pool.raise_failures()
        return did

    def _round(self) -> bool:
        self._call_pool.raise_failures()
        seen = self._scheduler.observe()
        did = False
        busy = self._call_pool.busy()  # before the ledger: a call is on record when it ends
        fold = self._ledger.read()
        left = out_of_spec(self._pools, self._always, fold, busy)
        for act in (*left, *acts(self._pools, fold, seen, busy)):
            self._unless_refused(partial(self._do, act, seen))
            did = True
        for spilling in self._spills:
            did = self._spill(spilling, seen) or did
        if seen.requests:
            self._scheduler.remove_requests([request.id for request in seen.requests])
            did = True
        self._unless_refused(partial(self._making.place, seen))
        self._log_reasons(arrived(seen))
        there = {each.job.id for each in seen.jobs}
        self._logged = {job: text for job, text in self._logged.items() if job in there}
        self._stay = {job: why for job, why in self._stay.items() if job in there}
        nodes = self._ledger.nodes().values()
        self._on_the_way = any(r.is_live and r.step != "joined" for r in nodes)
        return did

    def _unless_refused(self, act: Callable[[], None]) -> None:
        """Do one action; where the scheduler refuses it, report that, and retry next round."""
        try:
            act()
        except SchedulerRefused as error:
            self._report(AgentEvent(what="not-done", reason=str(error)))

    def pause(self, seconds: float) -> None:
        """Wait for the next round: for a request, or briefly while nodes are on their way."""
        if self._on_the_way:
            time.sleep(min(seconds, SOON_S))
            return
        began = time.monotonic()
        try:
            self._scheduler.wait(seconds)
        except SchedulerSilent:  # the next poll shows it
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))

    def _do(self, act: Act, seen: Seen) -> None:
        match act:
            case Launch():
                self._launch(act, seen)
            case GoOn(records=records):
                self._making.go_on(records)
            case Joined(records=records):
                self._making.step(records, "joined")
            case Leave(records=records, reason=reason):
                self._making.step(records, "leaving", reason)
                left = (msgspec.structs.replace(r, step="leaving", reason=reason) for r in records)
                for group in grouped(left):
                    self._making.go_on(group)
            case GiveUp(nodes=nodes, reason=reason):
                self._report(AgentEvent(what="gave-up", nodes=folded(nodes), reason=reason))
                lost = frozenset(nodes)
                on = [each.job.id for each in seen.jobs if not lost.isdisjoint(each.nodes)]
                self._scheduler.give_up(nodes, f"{MARK}{reason}")
                self._log_reasons(dict.fromkeys(on, f"its nodes don't come: {reason}"))
            case Forget(nodes=nodes):
                self._report(AgentEvent(what="may-come-again", nodes=folded(nodes)))
                self._scheduler.forget(nodes)
            case Release(nodes=nodes):
                self._report(AgentEvent(what="let-go", nodes=folded(nodes)))
                self._scheduler.release(nodes)

    def _launch(self, launch: Launch, seen: Seen) -> None:
        """Record a request and make it, or report to the jobs why not."""
        rules = [each.rule for each in self._spills if each.rule.target.pool == launch.pool.pool]
        if not self._has_prices(launch, rules):
            return
        pool, fold = self._prices.of(launch.pool), self._ledger.read()
        allowed, why = affordable_options(
            rules, pool, fold, seen, nodes=len(launch.nodes), seconds=launch.seconds
        )
        purchase_options = [option for option in launch.purchase_options if option in allowed]
        if not purchase_options:
            reason = why or "the ways to buy it that the ceilings allow gave nothing lately"
            self._ledger.record_intent(self._refusal(launch, reason))
            self._report(AgentEvent(what="refused", nodes=folded(launch.nodes), reason=reason))
            self._scheduler.give_up(launch.nodes, f"{MARK}{reason}")
            self._log_reasons(dict.fromkeys(launch.jobs, f"refused: {reason}"))
            return
        longest = [rule.longest(launch.seconds) for rule in rules]
        step = BurstStepped(
            site=pool.site,
            pool=pool.pool,
            step="requested",
            nodes=folded(launch.nodes),
            burst=self._token(),
            option=purchase_options[0],
            usd_per_hour=pool.prices.get(purchase_options[0], 0.0),
            until=seen.now + max(longest) if longest and launch.seconds is not None else None,
            alone=launch.alone,
        )
        self._ledger.record_intent(step)
        self._report(
            AgentEvent(what="requested", nodes=step.nodes, pool=pool.pool, option=step.option)
        )
        nodes = self._ledger.nodes()
        self._making.go_on(tuple(nodes[name] for name in launch.nodes))

    def _has_prices(self, launch: Launch, rules: Collection[Rule]) -> bool:
        """Return whether the budget can be judged; query the provider's prices where not."""
        pool = launch.pool
        if not any(rule.ceilings for rule in rules) or self._prices.is_fresh(pool.pool):
            return True

        def call() -> None:
            requested = {
                option: self._work.price(pool.site, pool.pool, option)
                for option in pool.purchase_options
            }
            known = {option: usd for option, usd in requested.items() if usd is not None}
            self._prices.learn(pool.pool, known)

        self._call_pool.start(launch.nodes, call)
        return self._prices.is_fresh(pool.pool)

    def _refusal(self, launch: Launch, reason: str) -> BurstStepped:
        return BurstStepped(
            site=launch.pool.site,
            pool=launch.pool.pool,
            step="refused",
            nodes=folded(launch.nodes),
            burst=self._token(),
            option=NO_OPTION,
            reason=reason,
        )

    def _spill(self, spilling: Spilling, seen: Seen) -> bool:
        fold = self._ledger.read()
        closed = closed_reason(self._pools, spilling, fold, seen)
        verdict = judge(spilling, fold, seen, closed)
        for move in verdict.moves:
            if seen.now - self._stay.get(move.job, (-MOVE_AGAIN_S, ""))[0] >= MOVE_AGAIN_S:
                self._move(move, seen)
        if verdict.promise is not None:
            self._ledger.record(verdict.promise)
        stay = {
            m.job: f"stays: {self._stay[m.job][1]}" for m in verdict.moves if m.job in self._stay
        }
        self._log_reasons(verdict.reasons | stay)
        return bool(verdict.moves)

    def _move(self, move: JobMoved, seen: Seen) -> None:
        self._ledger.record(move)
        try:
            self._scheduler.move(move.job, move.to, move.reason)
        except SchedulerRefused as error:
            self._stay[move.job] = (seen.now, f"its move to {move.to} was refused: {error}")
            self._report(
                AgentEvent(what="not-moved", job=move.job, pool=move.to, reason=str(error))
            )
            return
        self._stay.pop(move.job, None)
        self._report(AgentEvent(what="moved", job=move.job, pool=move.to, reason=move.reason))

    def _log_reasons(self, sentences: dict[str, str]) -> None:
        """Update the messages of jobs; of very many, first those without one."""
        new = [job for job, text in sentences.items() if self._logged.get(job) != text]
        new.sort(key=self._logged.__contains__)
        logged = {job: sentences[job] for job in new[:LOGGED_AT_ONCE]}
        if logged:
            self._scheduler.annotate(logged)
            self._logged |= logged


_STATE_CODES = frozenset({"GC900", "GC901", "GC902", "GC903", "GC904"})
"""What may be wrong with the cluster's state (`lifecycle.state`): nothing may be written then."""


def is_fault(error: BaseException) -> bool:
    """Return whether a call's error ends the agent; otherwise what it stopped is tried again."""
    if isinstance(error, LifecycleError):
        return any(found.code in _STATE_CODES for found in error.diagnostics)
    return not isinstance(error, ProviderError | SchedulerSilent)
