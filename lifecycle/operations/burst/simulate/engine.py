"""Replays a scenario, event by event: a heap of what happens next, and work only where it changes.

Everything at one time is processed first, ends before starts; then the partition's own nodes start
what they can, jobs that wait for a rented node move back where there is room, and the policy checks
those that have waited long enough. A rented node takes `boot_s` until it runs jobs, is reused while
idle, and is bought on the first option that the policy leaves open.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from ..policy import Home as HomeRoom
from ..policy import Rule, going_back
from ..policy.rule import DAY_S
from .home import Home
from .outcomes import Outcome, Outcomes
from .scenario import Scenario
from .spill import Spilling

_HOME_END, _CLOUD_END, _RELEASE, _CLOUD_START, _SUBMIT, _DUE, _DAY = range(7)
"""Kinds of events in the order in which those of one moment happen."""


class Engine:
    """One replay."""

    def __init__(self, scenario: Scenario, rule: Rule | None) -> None:
        """Queue the submissions; nothing runs yet.

        Args:
            scenario: what is replayed.
            rule: the spill; None: nothing spills.
        """
        self._scenario = scenario
        jobs = len(scenario.nodes)
        self._home = Home(scenario.home_nodes, scenario.nodes, scenario.limits)
        self._spilling = None if rule is None else Spilling(scenario, rule, self._push)
        self._events = [(at, _SUBMIT, job, 0) for job, at in enumerate(scenario.submits)]
        heapify(self._events)
        self.outcomes = Outcomes(jobs)
        self._numbers = {job.number: place for place, job in enumerate(scenario.trace_jobs)}
        self._followers: dict[int, list[int]] = {}
        self._day_ahead = False
        self._handlers: dict[int, Callable[[float, int, int], None]] = {
            _HOME_END: self._end_at_home,
            _CLOUD_END: self._end_in_cloud,
            _RELEASE: self._release,
            _CLOUD_START: self._start_in_cloud,
            _SUBMIT: self._submit,
            _DUE: self._due,
            _DAY: self._new_day,
        }

    def run(self) -> None:
        """Replay everything; `outcomes` has the result of each job."""
        events = self._events
        while events:
            now = events[0][0]
            while events and events[0][0] == now:
                _at, kind, which, token = heappop(events)
                self._handlers[kind](now, which, token)
            self._settle(now)
        if self._spilling is not None:
            for job, word in self._spilling.still_waiting():
                self.outcomes.refuse(job, word)

    @property
    def spilling(self) -> Spilling | None:
        """The cloud's side; None where nothing spills."""
        return self._spilling

    def _push(self, at: float, what: str, which: int, token: int) -> None:
        kinds = {"start": _CLOUD_START, "end": _CLOUD_END, "release": _RELEASE}
        heappush(self._events, (at, kinds[what], which, token))

    def _settle(self, now: float) -> None:
        """Start, bring back and move what the events of this moment allow."""
        self._start_at_home(now)
        spilling = self._spilling
        if spilling is None:
            return
        if self._home.free and spilling.moved:
            self._bring_back(now)
        if not spilling.is_stale:
            return
        for job in spilling.round(now):
            self._leave_home(job)
        for job, word in spilling.finally_refused():
            if self._is_too_large(job):
                self._give_up(job, word, now)
        self._start_at_home(now)
        if spilling.waits_for_a_day and self._events and not self._day_ahead:
            self._day_ahead = True
            heappush(self._events, ((now // DAY_S + 1) * DAY_S, _DAY, 0, 0))

    def _start_at_home(self, now: float) -> None:
        for job in self._home.schedule(now):
            self._started_at_home(job, now)

    def _started_at_home(self, job: int, now: float) -> None:
        self.outcomes.start(job, now, Outcome.HOME)
        if self._spilling is not None:
            self._spilling.stay_home(job)
        run = self._scenario.runs[job]
        heappush(self._events, (now + run, _HOME_END, job, 0))

    def _bring_back(self, now: float) -> None:
        spilling, home = self._spilling, self._home
        if spilling is None:
            return
        oldest = home.waiting.oldest()
        since = None if oldest < 0 else self.outcomes.eligible[oldest]
        room = HomeRoom(free_nodes=home.free, oldest_waiting=since)
        back = set(going_back(spilling.moved.values(), room))
        for job in [job for job, move in spilling.moved.items() if move.id in back]:
            spilling.go_back(job, now)
            home.start(job, now)
            self._started_at_home(job, now)

    def _leave_home(self, job: int) -> None:
        if not self._is_too_large(job):
            self._home.waiting.remove(job)

    def _is_too_large(self, job: int) -> bool:
        return self._scenario.nodes[job] > self._scenario.home_nodes

    def _submit(self, now: float, job: int, follows: int) -> None:
        known = self._scenario.trace_jobs[job]
        before = self._numbers.get(known.preceding, -1)
        if not follows and 0 <= before != job and not self.outcomes.is_over(before):
            self._followers.setdefault(before, []).append(job)
            return
        self.outcomes.eligible[job] = now
        if not self._is_too_large(job):
            self._home.queue(job)
        elif self._spilling is None:
            self._give_up(job, "home", now)
        if self._spilling is not None:
            heappush(self._events, (now + self._spilling.rule.after, _DUE, job, 0))

    def _give_up(self, job: int, word: str, now: float) -> None:
        self.outcomes.refuse(job, word)
        self._follow(job, now)

    def _follow(self, job: int, now: float) -> None:
        """Submit the jobs that waited for the end of this one."""
        for follower in self._followers.pop(job, ()):
            think = self._scenario.trace_jobs[follower].think
            at = max(now + think, self._scenario.submits[follower])
            heappush(self._events, (at, _SUBMIT, follower, 1))

    def _due(self, _now: float, job: int, _token: int) -> None:
        if self._spilling is not None and self.outcomes.waits(job):
            self._spilling.due(job, self.outcomes.eligible[job])

    def _end_at_home(self, now: float, job: int, _token: int) -> None:
        self._home.end(job)
        self._over(job, now)

    def _end_in_cloud(self, now: float, job: int, _token: int) -> None:
        if self._spilling is not None:
            self._spilling.end(job, now)
        self._over(job, now)

    def _over(self, job: int, now: float) -> None:
        self.outcomes.end(job, now)
        self._follow(job, now)

    def _start_in_cloud(self, now: float, job: int, token: int) -> None:
        if self._spilling is not None and self._spilling.start(job, now, token):
            self.outcomes.start(job, now, Outcome.CLOUD)

    def _release(self, now: float, node: int, token: int) -> None:
        if self._spilling is not None:
            self._spilling.release(node, now, token)

    def _new_day(self, _now: float, _which: int, _token: int) -> None:
        self._day_ahead = False
        if self._spilling is not None:
            self._spilling.is_stale = True
