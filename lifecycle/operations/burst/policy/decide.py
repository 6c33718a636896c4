"""Which jobs spill: one by itself, or a queue in fair order.

The order is by age, and no job starves. The oldest job that only lacks room gets a reservation: it
starts at the latest when everything that is rented has ended at its limit, and the reserved time is
never moved to later. Younger jobs may start before it, if they don't delay that time. So a big job
neither blocks the small ones behind it nor starves, and a job that can't ever spill (another GPU,
another account, above a ceiling by itself) gets no reservation and blocks none.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .commitments import Commitments
from .fitting import hours, lasting_reasons, staging_of
from .room import Place, ReservedRoom, RoomRequest, find, room_later, take
from .rule import Rule
from .situation import ROOM, Backfill, PendingJob, Reason, Rented, Situation

DEPTH = 100
"""Jobs that are checked in one round behind one that waits for room (as Slurm's bf_max_job_test,
whose default is 500: a burst pool is smaller than a site)."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a job spills, with all checks."""

    job: str
    spills: bool
    reasons: tuple[Reason, ...]
    """In the order of WORDS; those that are met count for it."""
    not_before: float | None = None
    """Of a job that stays: when waiting alone would change that, or its promise; None: not so."""
    new_nodes: int = 0
    reuses: tuple[str, ...] = ()
    """Idle nodes that it takes."""
    purchase_options: tuple[str, ...] = ()
    """Ways to buy its new nodes, in their order; no other may be taken."""
    usd_per_hour_per_node: float | None = None
    """Most that one new node may cost; None: there is no ceiling."""
    adds_usd_per_hour: float | None = None
    """Most that it adds; None: not known, which only goes where there is no ceiling."""
    until: float | None = None
    """When its nodes are given back at the latest."""
    stage: tuple[str, ...] = ()
    """Storage to stage before its nodes are requested."""

    @property
    def against(self) -> Reason | None:
        """The first reason to stay."""
        return next((reason for reason in self.reasons if not reason.holds), None)

    @property
    def is_final(self) -> bool:
        """Whether it can't spill until the job, the spec or the catalog changes."""
        return any(reason.lasts for reason in self.reasons)


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions about a queue."""

    decisions: tuple[Decision, ...]
    """In fair order. Those that spill hold all together."""
    promise: Backfill | None = None
    """For the next round's Situation."""


def age_order(job: PendingJob) -> tuple[float, str]:
    """Return what the fair order sorts by: age, then name."""
    return job.eligible_since, job.id


def decide(rule: Rule, job: PendingJob, situation: Situation) -> Decision:
    """Decide about one job as if no other waited: reservations are ignored.

    Args:
        rule: the spill of the job's partition.
        job: waits there.
        situation: the current state.
    """
    decision, _place = _judge(rule, job, situation, Commitments.of(situation), None)
    return decision


def decide_all(
    rule: Rule, jobs: Iterable[PendingJob], situation: Situation, *, depth: int = DEPTH
) -> Round:
    """Decide about a queue: the job with a reservation, then the oldest first.

    Args:
        rule: the spill of the jobs' partition.
        jobs: the partition's pending jobs, in any order.
        situation: the current state, with the reservation of the last round.
        depth: jobs that are checked behind one that waits for room.
    """
    promised = None if situation.promise is None else situation.promise.job
    ordered = sorted(jobs, key=lambda job: (job.id != promised, *age_order(job)))
    commitments = Commitments.of(situation)
    kept: ReservedRoom | None = None
    decisions: list[Decision] = []
    behind = 0
    for job in ordered:
        if behind >= depth:
            decisions.append(_unchecked(job, depth))
            continue
        behind += kept is not None
        decision, place = _judge(rule, job, situation, commitments, kept)
        if place is not None and decision.until is not None:
            take(commitments, place, ("job", job.id), situation.now, decision.until)
        elif kept is None and lacks_room(decision.reasons):
            kept = _keep_local(rule, job, situation, commitments)
        if kept is not None and kept.job == job.id:
            decision = msgspec.structs.replace(decision, not_before=kept.rent.begins)
        decisions.append(decision)
    promise = None if kept is None else Backfill(job=kept.job, at=kept.rent.begins)
    return Round(decisions=tuple(decisions), promise=promise)


def lacks_room(reasons: Iterable[Reason]) -> bool:
    """Return whether a job lacks only room."""
    against = {reason.word for reason in reasons if not reason.holds}
    return bool(against) and against <= ROOM


def _judge(
    rule: Rule,
    job: PendingJob,
    situation: Situation,
    commitments: Commitments,
    kept: ReservedRoom | None,
) -> tuple[Decision, Place | None]:
    lasting = lasting_reasons(rule, job, situation.staging_s)
    reasons = [*timely_reasons(rule, job, situation.now), *lasting]
    if any(reason.lasts for reason in lasting):
        return Decision(job=job.id, spills=False, reasons=tuple(reasons)), None
    staging = staging_of(rule, job, situation.staging_s)
    wanted = RoomRequest(job.nodes, staging.seconds + rule.longest(job.time_limit))
    place = find(rule, commitments, situation.now, wanted, kept)
    if not isinstance(place, Place):
        return Decision(job=job.id, spills=False, reasons=(*reasons, *place)), None
    reasons.append(Reason("nodes", holds=True, text=f"pool {rule.target.pool} has room for it"))
    reasons += _ceilings_hold(rule, commitments, place)
    if not all(reason.holds for reason in reasons):
        wait = None if job.held else job.eligible_since + rule.after
        return Decision(job=job.id, spills=False, reasons=tuple(reasons), not_before=wait), None
    known = place.cap is not None or rule.target.is_free or not place.new_nodes
    return Decision(
        job=job.id,
        spills=True,
        reasons=tuple(reasons),
        new_nodes=place.new_nodes,
        reuses=tuple(str(key) for key in place.reused),
        purchase_options=rule.options_up_to(place.cap) if place.new_nodes else (),
        usd_per_hour_per_node=place.cap,
        adds_usd_per_hour=place.usd_per_hour if known else None,
        until=situation.now + wanted.seconds,
        stage=staging.storage,
    ), place


def timely_reasons(rule: Rule, job: PendingJob, now: float) -> tuple[Reason, Reason]:
    """Return what waiting changes: whether it waits for nodes alone, and for how long."""
    held = job.held or "it waits for nodes alone"
    waited = max(0.0, now - job.eligible_since)
    text = f"it has waited {_rough(waited)}, after is {hours(rule.after)}"
    is_due = now >= job.eligible_since + rule.after
    return Reason("held", not job.held, held), Reason("wait", is_due, text)


def _ceilings_hold(rule: Rule, commitments: Commitments, place: Place) -> list[Reason]:
    rate = commitments.usd_per_hour + place.usd_per_hour
    texts = {
        "hour": f"with it ${rate:,.2f}/h are rented",
        "day": "each day that it may run stays below",
    }
    return [
        Reason(
            ceiling.per,
            holds=True,
            text=f"{texts[ceiling.per]}, {ceiling.where} is {_usd(ceiling.usd)}",
        )
        for ceiling in rule.ceilings
    ]


def _keep_local(
    rule: Rule, job: PendingJob, situation: Situation, commitments: Commitments
) -> ReservedRoom:
    promise = situation.promise
    latest = promise.at if promise is not None and promise.job == job.id else None
    seconds = staging_of(rule, job, situation.staging_s).seconds + rule.longest(job.time_limit)
    wanted = RoomRequest(job.nodes, seconds)
    return ReservedRoom(job.id, room_later(rule, commitments, situation.now, wanted, latest))


def _unchecked(job: PendingJob, depth: int) -> Decision:
    text = f"{depth} older jobs are ahead of it, behind one that waits for room"
    return Decision(job=job.id, spills=False, reasons=(Reason("turn", holds=False, text=text),))


def _rough(seconds: float) -> str:
    """Return a duration as text: "31 min", "3.5 h"."""
    if seconds < 60:  # noqa: PLR2004  # a minute; jobs' messages change no faster
        return "less than a minute"
    if seconds < 2 * 3600:
        return f"{int(seconds // 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86400 else f"{seconds / 86400:.1f} d"


def _usd(value: float) -> str:
    return f"${value:,.2f}"


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The partition's own nodes."""

    free_nodes: int
    """Nodes that a job could start on now."""
    oldest_waiting: float | None
    """Since when the oldest job waits that home is to start next; None: none waits."""


def going_back(moved: Iterable[PendingJob], home: Home) -> tuple[str, ...]:
    """Return jobs that go back now, the oldest first.

    Args:
        moved: jobs that have spilled and have not started: their data is staged, their nodes boot.
        home: the partition's own nodes.

    One moves back when it could start on the partition's own nodes at once and is older than the
    jobs that wait there, so that it overtakes none. It moves back once: after a second spill it
    stays.
    """
    free, going = home.free_nodes, []
    for job in sorted(moved, key=age_order):
        passes = home.oldest_waiting is not None and home.oldest_waiting < job.eligible_since
        if job.nodes <= free and not passes and not job.returned:
            free -= job.nodes
            going.append(job.id)
    return tuple(going)


def to_release(rule: Rule, rented: Iterable[Rented], now: float) -> tuple[str, ...]:
    """Return idle nodes to give back: idle for long enough, and not of the pool's least count."""
    return tuple(
        node.node
        for node in rented
        if node.idle_since is not None
        and not node.always
        and now - node.idle_since >= rule.target.idle
    )
