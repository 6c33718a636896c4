"""State of each rented node, moved jobs, and cost: a fold of the events."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable

import msgspec

from .....schemas.derived.hostlist import expand, fold
from ....state import BurstStepped, EventLog, JobMoved, RoomPromised, RunStarted
from ....state.event_types import BurstStep  # msgspec reads it
from ....state.events import Event, EventFold
from ..policy import Backfill
from ..policy.rule import DAY_S, by_day

NO_OPTION = "-"
"""Placeholder option of a refusal without a cloud's call: a ceiling did not allow it."""
LIVE = frozenset({"requested", "made", "joined", "leaving"})
"""Steps after which something of a node may exist."""


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One rented node, from the first request on."""

    node: str
    site: str
    pool: str
    step: BurstStep
    burst: str
    option: str
    usd_per_hour: float
    requested: float
    """When it was requested, seconds since 1970."""
    until: float | None
    reason: str = ""
    failed: bool = False
    """It is leaving because it never came."""
    alone: bool = False
    """Requested: for one job. Refused: together with other jobs' nodes, so it is requested
    separately next.
    """

    @property
    def is_live(self) -> bool:
        """Whether something of it may exist."""
        return self.step in LIVE


class BurstFold(EventFold):
    """The events' tale. Pure: the same events, the same ledger."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.nodes: dict[str, NodeRecord] = {}
        self.refused: dict[tuple[str, str], tuple[float, str]] = {}
        """(pool, option) -> when it failed, and the message."""
        self.never_came: dict[tuple[str, str], float] = {}
        """(node, option) -> when it was given back without having come."""
        self.held: dict[str, float] = {}
        """Node -> when a ceiling did not allow it."""
        self.moved: dict[str, JobMoved] = {}
        """Job -> its last move."""
        self.returned: set[str] = set()
        """Jobs that went home."""
        self.moved_back: dict[str, float] = {}
        self.promises: dict[str, Backfill] = {}
        self._spent: defaultdict[tuple[str, int], float] = defaultdict(float)

    def apply(self, events: Iterable[Event]) -> None:
        """Fold more events, in order; those folded before, and stale ones, change nothing."""
        for event in self.fresh(events):
            at = event.time.timestamp()
            match event.body:
                case BurstStepped() as step:
                    for node in expand(step.nodes):
                        self._step(node, step, at)
                case JobMoved() as move:
                    self._move(move, at)
                case RoomPromised() as promised:
                    self._promise(promised)
                case RunStarted(command="down"):
                    self._remove_all(at)
                case _:
                    pass

    def _move(self, move: JobMoved, at: float) -> None:
        self.moved[move.job] = move
        if move.to == move.home:
            self.returned.add(move.job)
            self.moved_back[move.job] = at

    def _promise(self, promised: RoomPromised) -> None:
        self.promises.pop(promised.partition, None)
        if promised.job:
            self.promises[promised.partition] = Backfill(job=promised.job, at=promised.at)

    def _step(self, node: str, step: BurstStepped, at: float) -> None:
        before = self.nodes.get(node)
        same = before is not None and before.burst == step.burst
        requested = before.requested if before is not None and same else at
        if before is not None and before.is_live and step.step in {"gone", "refused"}:
            self._bill(before, requested, at)
        failed = step.step == "leaving" and before is not None and before.step != "joined"
        if step.step == "refused" and step.option == NO_OPTION:
            self.held[node] = at
        elif step.step == "refused" and not step.alone:
            self.refused[step.pool, step.option] = (at, step.reason)
        if step.step == "gone" and before is not None and before.failed:
            self.never_came[node, before.option] = at
        if step.step == "joined":
            self.refused.pop((step.pool, step.option), None)
            self.never_came.pop((node, step.option), None)
        self.nodes[node] = NodeRecord(
            node=node,
            site=step.site,
            pool=step.pool,
            step=step.step,
            burst=step.burst,
            option=step.option,
            usd_per_hour=step.usd_per_hour,
            requested=requested,
            until=step.until,
            reason=step.reason,
            failed=(failed and bool(step.reason))
            or (same and before is not None and before.failed),
            alone=step.alone,
        )

    def _remove_all(self, at: float) -> None:
        """`down` removes every node, and searches for leftovers."""
        for record in self.nodes.values():
            if record.is_live:
                self._bill(record, record.requested, at)
        self.nodes.clear()

    def _bill(self, record: NodeRecord, begins: float, ends: float) -> None:
        if record.step == "requested":
            return  # nothing of it came to be
        spread = by_day(begins, ends, record.usd_per_hour)
        for number, usd in enumerate(spread.usd, start=spread.first):
            self._spent[record.pool, number] += usd

    def spent_today(self, pool: str, now: float) -> float:
        """Return the USD that a pool's nodes have cost since midnight (UTC), running ones too."""
        today = int(now // DAY_S)
        spent = self._spent[pool, today]
        for record in self.nodes.values():
            if record.pool == pool and record.is_live:
                begins = max(record.requested, today * DAY_S)
                spent += sum(by_day(begins, max(now, begins), record.usd_per_hour).usd)
        return spent


class BurstLedger:
    """The fold, and the way to add to it. Safe to share between threads."""

    def __init__(self, log: EventLog) -> None:
        """Read nothing yet."""
        self._log = log
        self._fold = BurstFold()
        self._lock = threading.Lock()

    def read(self) -> BurstFold:
        """Return the fold with all that is known; only the agent writes what it is about."""
        with self._lock:
            if not self._fold.seq:
                self._log.read()
            self._fold.apply(self._log.known(since=self._fold.seq))
            return self._fold

    def nodes(self) -> dict[str, NodeRecord]:
        """Return a copy of each node's state."""
        with self._lock:
            self._fold.apply(self._log.known(since=self._fold.seq))
            return dict(self._fold.nodes)

    def record_intent(self, step: BurstStepped) -> None:
        """Record that nodes are about to be requested."""
        self._log.append(step)

    def step(
        self, records: Collection[NodeRecord], step: BurstStep, reason: str = "", *,
        alone: bool | None = None,
    ) -> None:  # fmt: skip
        """Write a step of nodes, an event for each burst that they are of."""
        bursts: dict[str, list[NodeRecord]] = {}
        for record in records:
            bursts.setdefault(record.burst, []).append(record)
        for burst, same in bursts.items():
            first = same[0]
            self._log.append(
                BurstStepped(
                    site=first.site,
                    pool=first.pool,
                    step=step,
                    nodes=fold([record.node for record in same]),
                    burst=burst,
                    option=first.option,
                    usd_per_hour=first.usd_per_hour,
                    until=first.until,
                    reason=reason,
                    alone=first.alone if alone is None else alone,
                )
            )

    def record(self, event: JobMoved | RoomPromised) -> None:
        """Write a move or a promise."""
        self._log.append(event)
