"""What the agent does next, from the ledger and the scheduler's state: pure, without memory.

Nothing is kept between two rounds but the ledger, so a round after a kill decides as the one
before it would have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from .ledger import BurstFold, NodeRecord
from .scheduler import MARK, JobSeen, NodeSeen, Seen

RETRY_S = 600.0
"""Seconds before a purchase option without capacity is tried again. Clouds advise to retry after
minutes (AWS: InsufficientInstanceCapacity)."""
HELD_S = 120.0
"""Seconds until nodes that a ceiling did not allow may be requested again."""
OVERDUE_S = 60.0
"""Seconds beyond the idle time after which nodes are let go that the scheduler kept."""

SET_BY_SLURM = ("ResumeTimeout reached", "Not responding")
"""Reasons that the scheduler sets itself. Once nothing is left of such a node, its name may be used
again. Reasons that users set are kept."""


class ElasticPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool whose nodes come and go."""

    pool: str
    site: str
    nodes: tuple[str, ...]
    """That may come."""
    purchase_options: tuple[str, ...] = ("",)
    """Ways to buy them, in the order in which they are tried."""
    prices: dict[str, float] = {}
    """Option -> USD per hour of one node, where it is known."""
    come_s: float
    """Seconds in which a node must take jobs."""
    idle_s: float
    """Seconds that an idle node is kept."""
    overdue_s: float = OVERDUE_S
    """Seconds in addition that the scheduler has to let it go by itself; 0: it never does."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Request nodes in one call; on the first of these options that the budget allows."""

    pool: ElasticPool
    nodes: tuple[str, ...]
    purchase_options: tuple[str, ...]
    jobs: tuple[str, ...]
    seconds: float | None
    """Longest limit of the jobs that are to run there; None: one has none."""
    alone: bool
    """They are of one job: if they are not available, requesting fewer at once won't help."""


class GoOn(msgspec.Struct, frozen=True, kw_only=True):
    """Continue with nodes from their state in the ledger: `requested`, made or leaving."""

    records: tuple[NodeRecord, ...]


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """They take jobs."""

    records: tuple[NodeRecord, ...]


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """Remove nodes; the reason is "" where they are no longer needed."""

    records: tuple[NodeRecord, ...]
    reason: str = ""


class GiveUp(msgspec.Struct, frozen=True, kw_only=True):
    """Report to the scheduler that nodes won't come."""

    nodes: tuple[str, ...]
    reason: str


class Forget(msgspec.Struct, frozen=True, kw_only=True):
    """Report to the scheduler that nodes may be requested again."""

    nodes: tuple[str, ...]


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """Have the scheduler let idle nodes go."""

    nodes: tuple[str, ...]


Act: TypeAlias = Launch | GoOn | Joined | Leave | GiveUp | Forget | Release


def acts(
    pools: Iterable[ElasticPool], fold: BurstFold, seen: Seen, busy: Collection[str]
) -> Iterator[Act]:
    """Yield what to do, pool by pool.

    Args:
        pools: whose nodes come and go.
        fold: the ledger.
        seen: the scheduler's view.
        busy: nodes that a call is at work for: they are left alone until it has ended.
    """
    jobs_on = _jobs_on(seen)
    for pool in pools:
        yield from _state_actions(pool, fold, seen, busy)
        yield from _requested(pool, fold, seen, busy, jobs_on)
        yield from _back(pool, fold, seen)


def _state_actions(  # noqa: C901  # a case for each step, none nested
    pool: ElasticPool, fold: BurstFold, seen: Seen, busy: Collection[str]
) -> Iterator[Act]:
    """Yield the actions that follow from the nodes' states."""
    on: list[NodeRecord] = []
    joined: list[NodeRecord] = []
    leaves: dict[str, list[NodeRecord]] = {}
    late: list[NodeRecord] = []
    names = frozenset(pool.nodes)
    mine = (r for r in fold.nodes.values() if r.pool == pool.pool and r.is_live)
    for record in mine:
        if record.node in busy or record.node not in names:
            continue
        if record.step in {"leaving", "requested"}:
            # Also requested nodes that are no longer wanted: a killed call may have created a
            # machine without a name. Repeating the call with its token finds it, and it is then
            # removed.
            on.append(record)
        elif (node := seen.nodes.get(record.node)) is None:
            continue  # who vanished from the scheduler is left alone
        elif (reason := _leaves(record, node)) is not None:
            leaves.setdefault(reason, []).append(record)
        elif record.step == "made":
            is_late = seen.now - record.requested > pool.come_s
            (joined if node.state == "here" else late if is_late else on).append(record)
    if late:
        reason = f"it was made, and took no jobs within {pool.come_s / 60:.0f} min"
        leaves.setdefault(reason, []).extend(late)
        yield GiveUp(nodes=tuple(record.node for record in late), reason=reason)
    if joined:
        yield Joined(records=tuple(joined))
    for reason, records in leaves.items():
        yield Leave(records=tuple(records), reason=reason)
    for group in grouped(on):
        yield GoOn(records=group)


def _leaves(record: NodeRecord, node: NodeSeen) -> str | None:
    """Return why a created node is removed, "" where it is not needed; None: it is kept."""
    if node.state == "down":
        return _died(record, node)
    again = node.state == "coming" and record.step == "joined"
    return "" if node.state == "off" or again else None


def _died(record: NodeRecord, node: NodeSeen) -> str:
    reason = node.reason.removeprefix(MARK)
    return reason or ("it is down" if record.step == "joined" else "it never came")


def grouped(records: Iterable[NodeRecord]) -> Iterator[tuple[NodeRecord, ...]]:
    """Yield the records of one burst and step together."""
    groups: dict[tuple[str, str], list[NodeRecord]] = {}
    for record in records:
        groups.setdefault((record.burst, record.step), []).append(record)
    yield from map(tuple, groups.values())


def _requested(
    pool: ElasticPool,
    fold: BurstFold,
    seen: Seen,
    busy: Collection[str],
    jobs_on: Mapping[str, Sequence[JobSeen]],
) -> Iterator[Act]:
    """Yield the requests for nodes that the scheduler wants and no call creates yet."""
    wanted = [
        name
        for name in pool.nodes
        if (node := seen.nodes.get(name)) is not None
        and node.state == "coming"
        and name not in busy
        and not ((record := fold.nodes.get(name)) is not None and record.is_live)
    ]
    batches: dict[tuple[tuple[str, ...], str], list[str]] = {}
    hopeless: list[str] = []
    for name in wanted:
        purchase_options = tuple(
            option
            for option in pool.purchase_options
            if _is_open(pool, fold, name, option, seen.now)
        )
        if not purchase_options:
            hopeless.append(name)
            continue
        before = fold.nodes.get(name)
        by_itself = before is not None and before.step == "refused" and before.alone
        job = next((each.job.id for each in jobs_on.get(name, ())), name) if by_itself else ""
        batches.setdefault((purchase_options, job), []).append(name)
    if hopeless:
        yield GiveUp(nodes=tuple(hopeless), reason=_why_none(pool, fold))
    for (purchase_options, _), names in batches.items():
        on = list({job.job.id: job for name in names for job in jobs_on.get(name, ())}.values())
        limits = [job.job.time_limit for job in on]
        known = [limit for limit in limits if limit is not None]
        yield Launch(
            pool=pool,
            nodes=tuple(names),
            purchase_options=purchase_options,
            jobs=tuple(job.job.id for job in on),
            seconds=max(known) if known and len(known) == len(limits) else None,
            alone=len(on) <= 1,
        )


def _jobs_on(seen: Seen) -> dict[str, list[JobSeen]]:
    """Return node -> the jobs that hold it."""
    found: dict[str, list[JobSeen]] = {}
    for job in seen.jobs:
        for node in job.nodes:
            found.setdefault(node, []).append(job)
    return found


def _is_open(pool: ElasticPool, fold: BurstFold, node: str, option: str, now: float) -> bool:
    refused = fold.refused.get((pool.pool, option))
    came_not = fold.never_came.get((node, option))
    times = [at for at in (refused[0] if refused else None, came_not) if at is not None]
    return all(now - at >= RETRY_S for at in times)


def is_closed(pool: ElasticPool, fold: BurstFold, now: float) -> bool:
    """Return whether every purchase option of a pool failed recently: no job is sent there."""
    refused = [fold.refused.get((pool.pool, option)) for option in pool.purchase_options]
    return all(each is not None and now - each[0] < RETRY_S for each in refused)


def _why_none(pool: ElasticPool, fold: BurstFold) -> str:
    reasons = [
        fold.refused[pool.pool, option]
        for option in pool.purchase_options
        if (pool.pool, option) in fold.refused
    ]
    if not reasons:
        return "it never came, by any way to buy it"
    return max(reasons)[1] or "no capacity"


def _back(pool: ElasticPool, fold: BurstFold, seen: Seen) -> Iterator[Act]:
    """Yield what nodes may be requested again, and which were idle for too long."""
    again: list[str] = []
    idle: list[str] = []
    for name in pool.nodes:
        node, record = seen.nodes.get(name), fold.nodes.get(name)
        if node is None or (record is not None and record.is_live and record.step != "joined"):
            continue
        if node.state == "down" and (record is None or not record.is_live):
            ours = node.reason.startswith((MARK, *SET_BY_SLURM))
            is_open = any(
                _is_open(pool, fold, name, option, seen.now) for option in pool.purchase_options
            )
            if ours and is_open and seen.now - fold.held.get(name, -HELD_S) >= HELD_S:
                again.append(name)
        elif _is_overdue(pool, node, seen.now):
            idle.append(name)
    if again:
        yield Forget(nodes=tuple(again))
    if idle:
        yield Release(nodes=tuple(idle))


def _is_overdue(pool: ElasticPool, node: NodeSeen, now: float) -> bool:
    since = node.idle_since if node.state == "here" else None
    return since is not None and now - since >= pool.idle_s + pool.overdue_s
