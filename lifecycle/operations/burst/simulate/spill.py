"""The cloud's side of a replay: the policy's rounds, and the nodes of jobs that have moved.

The rounds are those of `policy.decide_all`, with caching: a job's lasting reasons are checked once,
and the accounts are updated instead of rebuilt.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from ..policy import PendingJob, Rule
from ..policy.commitments import Commitments, Rent, over_hour
from ..policy.decide import DEPTH
from ..policy.fitting import Staging, lasting_reasons, staging_of
from ..policy.room import Place, ReservedRoom, RoomRequest, find, room_later
from ..policy.rule import HOUR_S, by_day
from .scenario import Scenario

_ALWAYS = 1e15
"""A time that no trace reaches."""


class _Candidate(NamedTuple):
    """A job without a lasting reason against the move."""

    staging: Staging
    wanted: RoomRequest


class _Move(NamedTuple):
    """A job that was moved."""

    nodes: list[int]
    token: int


class Spilling:
    """Which jobs wait to move, which have moved, and their nodes."""

    def __init__(
        self, scenario: Scenario, rule: Rule, push: Callable[[float, str, int, int], None]
    ) -> None:
        """Start with the nodes that are always there.

        Args:
            scenario: what is replayed.
            rule: the spill.
            push: takes (time, "start" | "end" | "release", job or node, token) as an event.
        """
        self.rule = rule
        self.cloud = Cloud()
        self.moved: dict[int, PendingJob] = {}
        """Jobs that have moved and have not started."""
        self.is_stale = False
        """Whether something changed that a round may act on."""
        self.waits_for_a_day = False
        """Whether a job waits for the next day's money."""
        self.returned = 0
        self.stayed: Counter[str] = Counter()
        """Jobs that had waited long enough and ran at home, by the last reason against the move."""
        self.job_node_s = 0.0
        """Seconds that rented nodes ran jobs for, all together."""
        self.lacks_price = False
        """Whether a node was rented whose price isn't known."""
        self._scenario = scenario
        self._push = push
        self._commitments = Commitments()
        self._due: list[tuple[float, int]] = []
        self._pending: dict[int, PendingJob] = {}
        self._candidates: dict[int, _Candidate] = {}
        self._why: dict[int, str] = {}
        self._kept: ReservedRoom | None = None
        self._keeper = -1
        self._moves: dict[int, _Move] = {}
        self._refused: list[tuple[int, str]] = []
        self._tokens = 0
        self._idle_tokens: dict[int, int] = {}
        self._prices = {option.key: option.usd_per_hour for option in rule.target.purchase_options}
        self._cheapest = min(rule.caps, default=0.0)
        self._always = frozenset(self.cloud.rent(rule.target.always, 0.0, 0.0, 0.0))
        for node in self._always:
            self._commitments.add(node, Rent(0.0, _ALWAYS, 1, 0.0, idle=True))

    def due(self, job: int, eligible: float) -> None:
        """Queue a job that has waited long enough for a decision."""
        self._pending[job] = self._scenario.pending(job, eligible, returned=False)
        heappush(self._due, (eligible, job))
        self.is_stale = True

    def stay_home(self, job: int) -> None:
        """Note that a job started at home."""
        if self._pending.pop(job, None) is not None:
            self._candidates.pop(job, None)
            self.stayed[self._why.pop(job, "turn")] += 1

    def round(self, now: float) -> list[int]:
        """Move what may move now, the oldest first; returns it."""
        self.is_stale = self.waits_for_a_day = False
        moved: list[int] = []
        keeper, kept = self._keeper, None
        if keeper in self._candidates and not self._moves_now(keeper, now, None, moved):
            kept = self._keep(keeper, now, self._kept)
        aside: list[tuple[float, int]] = []
        behind = 0
        while self._due and behind < DEPTH and not (kept is not None and self._is_full()):
            entry = heappop(self._due)
            job = entry[1]
            if job == keeper and kept is not None:
                aside.append(entry)
            elif job in self._pending and self._may_ever(job):
                behind += kept is not None
                if not self._moves_now(job, now, kept, moved):
                    aside.append(entry)
                    if kept is None:
                        keeper, kept = job, self._keep(job, now, None)
        for entry in aside:
            heappush(self._due, entry)
        self._keeper, self._kept = (keeper, kept) if kept is not None else (-1, None)
        return moved

    def _may_ever(self, job: int) -> bool:
        """Return whether a job has no lasting reason against the move; such a reason is kept."""
        if job in self._candidates:
            return True
        move, staging_s = self._pending[job], self._scenario.staging_s
        against = next((r for r in lasting_reasons(self.rule, move, staging_s) if r.lasts), None)
        if against is not None:
            self._why[job] = against.word
            self._refused.append((job, against.word))
            return False
        staging = staging_of(self.rule, move, staging_s)
        seconds = staging.seconds + self.rule.longest(move.time_limit)
        self._candidates[job] = _Candidate(staging, RoomRequest(move.nodes, seconds))
        return True

    def _moves_now(self, job: int, now: float, kept: ReservedRoom | None, moved: list[int]) -> bool:
        """Move a job if there is room; keep why not otherwise."""
        candidate = self._candidates[job]
        place = find(self.rule, self._commitments, now, candidate.wanted, kept)
        if isinstance(place, Place):
            self._move(job, place, now)
            moved.append(job)
            return True
        self._why[job] = place[0].word
        self.waits_for_a_day |= place[0].word == "day"
        return False

    def _keep(self, job: int, now: float, before: ReservedRoom | None) -> ReservedRoom:
        latest = None if before is None else before.rent.begins
        wanted = self._candidates[job].wanted
        rent = room_later(self.rule, self._commitments, now, wanted, latest)
        return ReservedRoom(self._pending[job].id, rent)

    def _is_full(self) -> bool:
        """Return whether not one more node is available: then no job needs a check."""
        commitments, rule = self._commitments, self.rule
        if commitments.busy >= rule.target.most:
            return True
        one_more = commitments.usd_per_hour + self._cheapest
        return not commitments.idle and any(over_hour(rule.ceilings, one_more))

    def _move(self, job: int, place: Place, now: float) -> None:
        candidate = self._candidates.pop(job)
        self.moved[job] = self._pending.pop(job)
        self._why.pop(job, None)
        reused = [node for node in place.reused if isinstance(node, int)]
        for node in reused:
            self._commitments.end(node, now)
            self._idle_tokens.pop(node, None)
        requested = now + candidate.staging.seconds
        ready = requested + self._scenario.assumed.boot_s
        nodes = self.cloud.rent(place.new_nodes, requested, self._price(place), ready) + reused
        rate = sum(self.cloud.usd_per_hour(node) for node in nodes)
        until = now + candidate.wanted.seconds
        self._commitments.add(("job", job), Rent(now, until, len(nodes), rate))
        self._tokens += 1
        self._moves[job] = _Move(nodes, self._tokens)
        starts = max(requested, *(self.cloud.ready(node) for node in nodes))
        self._push(starts, "start", job, self._tokens)

    def _price(self, place: Place) -> float:
        """Return what a node costs on the first option that is open."""
        purchase_options = self.rule.options_up_to(place.cap)
        price = self._prices[purchase_options[0]] if purchase_options else 0.0
        self.lacks_price |= price is None and place.new_nodes > 0
        return price or 0.0

    def start(self, job: int, now: float, token: int) -> bool:
        """Start a moved job on its nodes; False where it went back before."""
        if job not in self._moves or self._moves[job].token != token:
            return False
        del self.moved[job]
        self._push(now + self._scenario.runs[job], "end", job, 0)
        return True

    def end(self, job: int, now: float) -> None:
        """End a job on rented nodes: they are idle."""
        nodes = self._moves.pop(job).nodes
        self._commitments.end(("job", job), now)
        rented = sum(node not in self._always for node in nodes)
        self.job_node_s += rented * self._scenario.runs[job]
        for node in nodes:
            self._let_idle(node, now)

    def go_back(self, job: int, now: float) -> None:
        """Take a job that has not started from its nodes."""
        del self.moved[job]
        self.returned += 1
        nodes = self._moves.pop(job).nodes
        self._commitments.end(("job", job), now)
        for node in nodes:
            if self.cloud.is_asked_for(node, now):
                self._let_idle(node, now)
            else:
                self.cloud.give_back(node, now)
                self.is_stale = True

    def _let_idle(self, node: int, now: float) -> None:
        self.is_stale = True
        if node in self._always:
            self._commitments.add(node, Rent(now, _ALWAYS, 1, 0.0, idle=True))
            return
        until = now + self.rule.target.idle
        rent = Rent(now, until, 1, self.cloud.usd_per_hour(node), idle=True)
        self._commitments.add(node, rent)
        self._tokens += 1
        self._idle_tokens[node] = self._tokens
        self._push(until, "release", node, self._tokens)

    def release(self, node: int, now: float, token: int) -> None:
        """Give back a node that has been idle for long enough."""
        if self._idle_tokens.get(node) == token:
            del self._idle_tokens[node]
            self._commitments.end(node, now)
            self.cloud.give_back(node, now)
            self.is_stale = True

    def finally_refused(self) -> Iterator[tuple[int, str]]:
        """Yield (job, reason) of those that can't ever move, once each."""
        while self._refused:
            yield self._refused.pop()

    def still_waiting(self) -> Iterator[tuple[int, str]]:
        """Yield (job, reason) of those that still wait to move when no events are left."""
        for job in self._pending:
            yield job, self._why.get(job, "turn")


class _Node(NamedTuple):
    since: float
    usd_per_hour: float
    ready: float
    """When it takes jobs."""


class Cloud:
    """Nodes by number, and what was paid for those that went."""

    def __init__(self) -> None:
        """Start with none."""
        self._nodes: dict[int, _Node] = {}
        self._next = 0
        self.usd = 0.0
        self.node_s = 0.0
        """Seconds that nodes were rented for, all together."""
        self.peak_nodes = 0
        self.peak_usd_per_hour = 0.0
        self._rate = 0.0
        self._days: defaultdict[int, float] = defaultdict(float)

    def rent(self, count: int, now: float, usd_per_hour: float, ready: float) -> list[int]:
        """Schedule a request for nodes at the time from which they are paid for."""
        numbers = list(range(self._next, self._next + count))
        self._next += count
        for number in numbers:
            self._nodes[number] = _Node(now, usd_per_hour, ready)
        self._rate += count * usd_per_hour
        self.peak_nodes = max(self.peak_nodes, len(self._nodes))
        self.peak_usd_per_hour = max(self.peak_usd_per_hour, self._rate)
        return numbers

    def give_back(self, number: int, now: float) -> None:
        """Give a node back."""
        node = self._nodes.pop(number)
        self._rate = self._rate - node.usd_per_hour if self._nodes else 0.0
        lasted = max(0.0, now - node.since)
        self.usd += lasted / HOUR_S * node.usd_per_hour
        self.node_s += lasted
        spread = by_day(node.since, now, node.usd_per_hour)
        for day, usd in enumerate(spread.usd, start=spread.first):
            self._days[day] += usd

    def is_asked_for(self, number: int, now: float) -> bool:
        """Return whether a node is already paid for."""
        return self._nodes[number].since <= now

    def ready(self, number: int) -> float:
        """Return when a node takes jobs."""
        return self._nodes[number].ready

    def usd_per_hour(self, number: int) -> float:
        """Return what a node costs."""
        return self._nodes[number].usd_per_hour

    @property
    def peak_usd_per_day(self) -> float:
        """What the dearest day (UTC) has cost, of nodes that were given back."""
        return max(self._days.values(), default=0.0)
