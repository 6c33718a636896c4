"""Round after round: look, decide, and have calls made beside it, so that none waits for another.

The order within each step is what survives a kill: on record first, then the call, then what came
of it. A call whose end isn't on record is made again, under the same names and the same token.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Protocol

import msgspec

from gcluster.lifecycle.burst.agent.book import NO_RUNG, Book, NodeRecord
from gcluster.lifecycle.burst.agent.decide import (
    Ask,
    ElasticPool,
    Forget,
    GiveUp,
    GoOn,
    Joined,
    Leave,
    Release,
    acts,
    alike,
    is_closed,
)
from gcluster.lifecycle.burst.agent.money import open_rungs
from gcluster.lifecycle.burst.agent.scheduler import MARK, SchedulerSilent
from gcluster.lifecycle.burst.agent.spill import Spilling, judge
from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.state import BurstStepped
from gcluster.schemas.hostlist import fold as folded
from gcluster.stacks.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gcluster.lifecycle.burst.agent.book import BurstFold
    from gcluster.lifecycle.burst.agent.crew import Crew
    from gcluster.lifecycle.burst.agent.decide import Act
    from gcluster.lifecycle.burst.agent.scheduler import Scheduler, Seen
    from gcluster.lifecycle.burst.agent.work import Made


class Work(Protocol):
    """The calls that the agent has made; see `ProviderWork`."""

    def grow(self, site: str, pool: str, nodes: Collection[str], rung: str, token: str) -> Made:
        """Make nodes in one call."""
        ...

    def shrink(self, site: str, nodes: Collection[str]) -> bool:
        """Remove nodes; say whether nothing of them is left."""
        ...

    def addresses(self, site: str, nodes: Collection[str]) -> dict[str, str]:
        """Return the addresses of nodes that have answered once."""
        ...

    def join(self, site: str, nodes: Collection[str]) -> dict[str, str]:
        """Converge nodes; return node -> why it is not done."""
        ...


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One line of what the agent says."""

    what: str
    """asked, made, refused, joined, leaving, gone, moved, promised, gave-up, silent ..."""
    nodes: str = ""
    job: str = ""
    pool: str = ""
    rung: str = ""
    reason: str = ""


class Agent:
    """What goes on between a scheduler and the providers of its rented nodes."""

    def __init__(
        self,
        *,
        pools: Collection[ElasticPool],
        spills: Collection[Spilling],
        scheduler: Scheduler,
        work: Work,
        book: Book,
        crew: Crew,
        say: Callable[[Happened], None],
        token: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        """Hold the parts; nothing is asked yet."""
        self._pools = tuple(pools)
        self._spills = tuple(spills)
        self._scheduler = scheduler
        self._work = work
        self._book = book
        self._crew = crew
        self._say = say
        self._token = token
        self._told: dict[str, str] = {}
        self._joined_ok: set[tuple[str, str]] = set()

    def round(self) -> bool:
        """Look once and act; say whether anything was done. Calls that take long go on beside.

        Raises:
            LifecycleError: the lock was lost: nothing more may be written.
        """
        self._crew.raise_failures()
        try:
            seen = self._scheduler.look()
            return self._act(seen)
        except SchedulerSilent as error:
            self._say(Happened(what="silent", reason=str(error)))
            return False

    def once(self, pause: Callable[[], None] = lambda: time.sleep(0.2)) -> bool:
        """Have one round, and wait for the calls that it began; say whether it did anything."""
        did = self.round()
        while self._crew.busy():
            pause()
        self._crew.raise_failures()
        return did

    def _act(self, seen: Seen) -> bool:
        did = False
        for act in list(acts(self._pools, self._book.read(), seen, self._crew.busy())):
            self._do(act, seen)
            did = True
        for spilling in self._spills:
            did = self._spill(spilling, seen) or did
        if seen.requests:
            self._scheduler.taken([request.id for request in seen.requests])
            did = True
        return did

    def _do(self, act: Act, seen: Seen) -> None:
        match act:
            case Ask():
                self._ask(act, seen)
            case GoOn(records=records):
                self._go_on(records)
            case Joined(records=records):
                self._step(records, "joined")
            case Leave(records=records, reason=reason):
                self._step(records, "leaving", reason)
                left = (msgspec.structs.replace(r, step="leaving", reason=reason) for r in records)
                for group in alike(left):
                    self._go_on(group)
            case GiveUp(nodes=nodes, reason=reason):
                self._say(Happened(what="gave-up", nodes=folded(nodes), reason=reason))
                self._scheduler.give_up(nodes, f"{MARK}{reason}")
            case Forget(nodes=nodes):
                self._say(Happened(what="may-come-again", nodes=folded(nodes)))
                self._scheduler.forget(nodes)
            case Release(nodes=nodes):
                self._say(Happened(what="let-go", nodes=folded(nodes)))
                self._scheduler.release(nodes)

    def _ask(self, ask: Ask, seen: Seen) -> None:
        """Put an ask on record and make it, or say to the jobs why not."""
        pool, fold = ask.pool, self._book.read()
        rules = [each.rule for each in self._spills if each.rule.target.pool == pool.pool]
        allowed, why = open_rungs(
            rules, pool, fold, seen, nodes=len(ask.nodes), seconds=ask.seconds
        )
        rungs = [rung for rung in ask.rungs if rung in allowed]
        if not rungs:
            reason = why or "the ways to buy it that the ceilings allow gave nothing lately"
            self._book.ask(self._refusal(ask, reason))
            self._say(Happened(what="refused", nodes=folded(ask.nodes), reason=reason))
            self._scheduler.give_up(ask.nodes, f"{MARK}{reason}")
            self._tell(dict.fromkeys(ask.jobs, f"refused: {reason}"))
            return
        longest = [rule.longest(ask.seconds) for rule in rules]
        step = BurstStepped(
            site=pool.site,
            pool=pool.pool,
            step="asked",
            nodes=folded(ask.nodes),
            burst=self._token(),
            rung=rungs[0],
            usd_per_hour=pool.prices.get(rungs[0], 0.0),
            until=seen.now + max(longest) if longest and ask.seconds is not None else None,
            alone=ask.alone,
        )
        self._book.ask(step)
        self._say(Happened(what="asked", nodes=step.nodes, pool=pool.pool, rung=step.rung))
        nodes = self._book.nodes()
        self._go_on(tuple(nodes[name] for name in ask.nodes))

    def _refusal(self, ask: Ask, reason: str) -> BurstStepped:
        return BurstStepped(
            site=ask.pool.site,
            pool=ask.pool.pool,
            step="refused",
            nodes=folded(ask.nodes),
            burst=self._token(),
            rung=NO_RUNG,
            reason=reason,
        )

    def _go_on(self, records: tuple[NodeRecord, ...]) -> None:
        names = [record.node for record in records]
        work = {"asked": self._grow, "made": self._join, "leaving": self._shrink}
        converged = {(record.node, record.burst) for record in records} <= self._joined_ok
        if records[0].step == "made" and converged:
            return  # it only has to register
        call = work[records[0].step]
        self._crew.start(names, lambda: call(records))

    def _grow(self, records: tuple[NodeRecord, ...]) -> None:
        first, names = records[0], [record.node for record in records]
        made = self._work.grow(first.site, first.pool, names, first.rung, first.burst)
        if made.unsure:
            self._say(Happened(what="unsure", nodes=folded(names), reason=made.refusal))
            return
        there = [record for record in records if record.node in made.exist]
        missing = [record for record in records if record.node not in made.exist]
        if there:
            self._step(there, "made")
        if missing:
            self._step(missing, "refused", made.refusal, alone=not first.alone)

    def _join(self, records: tuple[NodeRecord, ...]) -> None:
        site, names = records[0].site, [record.node for record in records]
        addresses = self._work.addresses(site, names)
        if not addresses:
            return
        self._scheduler.place(addresses)
        failed = self._work.join(site, list(addresses))
        for name, reason in failed.items():
            self._say(Happened(what="not-joined-yet", nodes=name, reason=reason))
        done = addresses.keys() - failed.keys()
        self._joined_ok |= {(r.node, r.burst) for r in records if r.node in done}

    def _shrink(self, records: tuple[NodeRecord, ...]) -> None:
        if self._work.shrink(records[0].site, [record.node for record in records]):
            self._step(records, "gone", records[0].reason)

    def _spill(self, spilling: Spilling, seen: Seen) -> bool:
        fold = self._book.read()
        closed = closed_reason(self._pools, spilling, fold, seen)
        verdict = judge(spilling, fold, seen, closed)
        for move in verdict.moves:
            self._book.tell(move)
            self._say(Happened(what="moved", job=move.job, pool=move.to, reason=move.reason))
            self._scheduler.move(move.job, move.to, move.reason)
        if verdict.promise is not None:
            self._book.tell(verdict.promise)
        self._tell(verdict.told)
        return bool(verdict.moves)

    def _tell(self, sentences: dict[str, str]) -> None:
        new = {job: text for job, text in sentences.items() if self._told.get(job) != text}
        if new:
            self._scheduler.tell(new)
            self._told |= new

    def _step(
        self,
        records: Collection[NodeRecord],
        step: str,
        reason: str = "",
        *,
        alone: bool | None = None,
    ) -> None:
        self._book.step(records, step, reason, alone=alone)  # type: ignore[arg-type]  # a BurstStep
        names = folded([record.node for record in records])
        pool, rung = (next(iter(records)).pool, next(iter(records)).rung)
        self._say(Happened(what=step, nodes=names, pool=pool, rung=rung, reason=reason))


def closed_reason(
    pools: Collection[ElasticPool], spilling: Spilling, fold: BurstFold, seen: Seen
) -> str:
    """Return why nothing can be had of a spill's pool now; "": it can."""
    pool = next((p for p in pools if p.pool == spilling.rule.target.pool), None)
    if pool is None or not is_closed(pool, fold, seen.now):
        return ""
    said = max(fold.refused[pool.pool, rung] for rung in pool.rungs)[1]
    return f"nothing can be had there now ({said})"


_STATE_CODES = frozenset({"GC900", "GC901", "GC902", "GC903", "GC904"})
"""What may be wrong with the cluster's state (`lifecycle.state`): nothing may be written then."""


def is_fault(error: BaseException) -> bool:
    """Say whether a call's error ends the agent; what it stopped is otherwise tried again."""
    if isinstance(error, LifecycleError):
        return any(found.code in _STATE_CODES for found in error.diagnostics)
    return not isinstance(error, ProviderError | SchedulerSilent)
