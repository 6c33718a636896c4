"""Which jobs move to rented nodes and which move back, by the policy; and each job's message."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from ....state import JobMoved, RoomPromised
from ..policy import Decision, Home, PendingJob, Rule, decide_all, going_back
from .budget import decision_context
from .decide import ElasticPool, is_closed
from .ledger import BurstFold
from .scheduler import JobSeen, Seen


class Spilling(msgspec.Struct, frozen=True, kw_only=True):
    """A partition whose jobs may move."""

    rule: Rule
    to: str
    """Partition that they move to."""
    home_nodes: tuple[str, ...]
    always: tuple[str, ...]
    """Nodes of the pool they move to that don't come and go."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a round of the policy came to."""

    moves: tuple[JobMoved, ...] = ()
    reasons: dict[str, str] = {}
    """Job -> sentence."""
    promise: RoomPromised | None = None
    """Where it changed."""
    decisions: tuple[Decision, ...] = ()


def judge(spilling: Spilling, fold: BurstFold, seen: Seen, closed: str = "") -> Verdict:
    """Decide about the jobs of one partition.

    Args:
        spilling: the partition and its rule.
        fold: the ledger.
        seen: the scheduler's view.
        closed: why nothing can be had of the pool now; "": it can.
    """
    rule = spilling.rule
    jobs = [_as_moved(each, fold) for each in _waiting(seen, rule.partition)]
    context = decision_context(rule, spilling.always, fold, seen, promise_of=rule.partition)
    done = decide_all(rule, jobs, context)
    moves, reasons = [], {}
    for decision in done.decisions:
        if closed and decision.spills:
            reasons[decision.job] = f"stays: it would spill, but {closed}"
            continue
        reasons[decision.job] = sentence(decision, rule)
        if decision.spills:
            moves.append(_move(decision, spilling, reasons[decision.job]))
    back = _back(spilling, fold, seen, closed)
    old, new = fold.promises.get(rule.partition), done.promise
    promise = None
    if old != new:
        promise = RoomPromised(partition=rule.partition)
        if new is not None:
            promise = RoomPromised(partition=rule.partition, job=new.job, at=new.at)
    return Verdict(
        moves=(*moves, *back.values()),
        reasons=reasons | {job: move.reason for job, move in back.items()},
        promise=promise,
        decisions=done.decisions,
    )


def closed_reason(
    pools: Collection[ElasticPool], spilling: Spilling, fold: BurstFold, seen: Seen
) -> str:
    """Return why nothing can be had of a spill's pool now; "": it can."""
    pool = next((p for p in pools if p.pool == spilling.rule.target.pool), None)
    if pool is None or not is_closed(pool, fold, seen.now):
        return ""
    reason = max(fold.refused[pool.pool, option] for option in pool.purchase_options)[1]
    return f"nothing can be had there now ({reason})"


def arrived(seen: Seen) -> dict[str, str]:
    """Return the messages of jobs whose nodes have all joined and that haven't begun yet."""
    return {
        each.job.id: "its nodes have come"
        for each in seen.jobs
        if each.starting and all(_is_here(seen, name) for name in each.nodes)
    }


def _is_here(seen: Seen, node: str) -> bool:
    found = seen.nodes.get(node)
    return found is not None and found.state == "here"


def sentence(decision: Decision, rule: Rule) -> str:
    """Return a job's message: one line, the first reason against, or that it moves and why."""
    if decision.spills:
        return f"spills to {rule.target.pool}: {decision.reasons[1].text}"
    against = decision.against
    word, text = ("stays", "") if against is None else (against.word, against.text)
    final = "; this lasts until the job or the spec changes" if decision.is_final else ""
    return f"stays ({word}): {text}{final}"


def _waiting(seen: Seen, partition: str) -> list[JobSeen]:
    return [each for each in seen.jobs if not each.nodes and each.partition == partition]


def _as_moved(each: JobSeen, fold: BurstFold) -> PendingJob:
    """Return the job with the ledger's data: whether and when it moved back."""
    job = each.job
    if job.id not in fold.returned:
        return job
    since = max(job.eligible_since, fold.moved_back.get(job.id, 0.0))
    return msgspec.structs.replace(job, returned=True, eligible_since=since)


def _move(decision: Decision, spilling: Spilling, reason: str) -> JobMoved:
    return JobMoved(
        job=decision.job,
        home=spilling.rule.partition,
        to=spilling.to,
        usd_per_hour=decision.usd_per_hour_per_node or 0.0,
        until=decision.until,
        nodes=decision.new_nodes,
        reason=reason,
    )


def _back(spilling: Spilling, fold: BurstFold, seen: Seen, closed: str) -> Mapping[str, JobMoved]:
    """Return the jobs that go home: it has room for them, or nothing can be had for them there."""
    home = spilling.rule.partition
    moved = {
        each.job.id: msgspec.structs.replace(each.job, returned=each.job.id in fold.returned)
        for each in _waiting(seen, spilling.to)
        if (move := fold.moved.get(each.job.id)) is not None
        and move.home == home
        and move.to != home
    }
    free = [
        name
        for name in spilling.home_nodes
        if (node := seen.nodes.get(name)) is not None
        and node.state == "here"
        and node.fit
        and node.idle_since is not None
    ]
    waits = [each.job.eligible_since for each in _waiting(seen, home) if not each.job.held]
    found = going_back(
        moved.values(), Home(free_nodes=len(free), oldest_waiting=min(waits, default=None))
    )
    reasons = dict.fromkeys(found, f"went back to {home}: it has room there")
    if closed:
        reasons = dict.fromkeys(moved, f"went back to {home}: {closed}") | reasons
    return {
        job: JobMoved(job=job, home=home, to=home, reason=reason) for job, reason in reasons.items()
    }
