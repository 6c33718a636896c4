"""Replays: a few jobs by hand, many against a plain scheduler, and what must always hold."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lifecycle.burst.queues import rules

from gcluster.lifecycle.operations.burst.policy import Rule
from gcluster.lifecycle.operations.burst.simulate.engine import Engine
from gcluster.lifecycle.operations.burst.simulate.home import Home
from gcluster.lifecycle.operations.burst.simulate.outcomes import Outcome
from gcluster.lifecycle.operations.burst.simulate.report import simulate
from gcluster.lifecycle.operations.burst.simulate.scenario import Assumed, Scenario
from gcluster.lifecycle.operations.burst.simulate.swf import TraceJob

DAY = 86400.0
_Told = tuple[float, float, float, int]
"""Submit time, run time, limit, nodes."""


def _scenario(
    answer: list[_Told],
    home: int,
    rule: Rule | None = None,
    *,
    follows: dict[int, int] | None = None,
) -> Scenario:
    jobs = [
        TraceJob(
            number=number,
            submit=submit,
            run=min(run, limit),
            processors=nodes,
            requested=limit,
            user=1,
            group=1,
            queue=1,
            preceding=(follows or {}).get(number, -1),
            think=0.0,
        )
        for number, (submit, run, limit, nodes) in enumerate(answer)
    ]
    return Scenario(
        partition="train",
        rule=rule,
        home_nodes=home,
        gpus_per_node=0,
        processor="node",
        processors_per_node=1,
        assumed=Assumed(boot_s=300.0 if rule is None else rule.target.start_up),
        begins=0.0,
        submits=[job.submit for job in jobs],
        runs=[job.run for job in jobs],
        limits=[job.requested or 0.0 for job in jobs],
        nodes=[job.processors for job in jobs],
        trace_jobs=jobs,
        cut=0,
        unlimited=0,
    )


def _starts(answer: list[_Told], home: int, **more: dict[int, int]) -> list[float]:
    engine = Engine(_scenario(answer, home, **more), None)
    engine.run()
    return engine.outcomes.started


def test_a_small_job_fills_a_hole_that_it_leaves_in_time_and_no_other() -> None:
    #        submit run limit nodes
    answer = [
        (0.0, 100.0, 100.0, 3),
        (1.0, 50.0, 50.0, 4),
        (2.0, 98.0, 98.0, 1),
        (3.0, 98.0, 98.0, 1),
    ]
    assert _starts(answer, 4) == [0.0, 100.0, 2.0, 150.0]


def test_a_long_job_starts_with_the_oldest_on_nodes_that_it_leaves_over() -> None:
    answer = [(0.0, 100.0, 100.0, 3), (1.0, 50.0, 50.0, 3), (2.0, 999.0, 999.0, 1)]
    assert _starts(answer, 4) == [0.0, 100.0, 2.0]


def test_a_job_that_follows_another_waits_for_its_end() -> None:
    answer = [(0.0, 100.0, 100.0, 1), (1.0, 10.0, 10.0, 1)]
    assert _starts(answer, 4, follows={1: 0}) == [0.0, 100.0]


class _PlainHome:
    """EASY backfill by the book: a list that is looked through from its beginning each time."""

    def __init__(self, nodes: int, answer: list[_Told]) -> None:
        self.free, self.answer = nodes, answer
        self.queue: list[int] = []
        self.running: dict[int, float] = {}

    def schedule(self, now: float) -> list[int]:
        started: list[int] = []
        while self.queue and self.answer[self.queue[0]][3] <= self.free:
            self._start(self.queue[0], now, started)
        if not self.queue:
            return started
        needed, free, at, over = self.answer[self.queue[0]][3], self.free, 0.0, 0
        for end, job in sorted((end, job) for job, end in self.running.items()):
            free += self.answer[job][3]
            if free >= needed:
                at, over = end, free - needed
                break
        for job in self.queue[1:].copy():
            _submit, _run, limit, nodes = self.answer[job]
            ends_before = now + limit <= at
            if nodes <= self.free and (ends_before or nodes <= over):
                over -= 0 if ends_before else nodes
                self._start(job, now, started)
        return started

    def _start(self, job: int, now: float, started: list[int]) -> None:
        self.queue.remove(job)
        self.free -= self.answer[job][3]
        self.running[job] = now + self.answer[job][2]
        started.append(job)


_seconds = st.integers(1, 40).map(float)
_jobs = st.lists(
    st.tuples(st.integers(0, 60).map(float), _seconds, _seconds, st.integers(1, 6)),
    min_size=1,
    max_size=25,
)


@given(_jobs, st.integers(0, 2**32))
def test_home_schedules_as_the_plain_scheduler_does(answer: list[_Told], seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # hypothesis chooses the seed
    home = Home(6, [job[3] for job in answer], [job[2] for job in answer])
    plain = _PlainHome(6, answer)
    coming, now = list(range(len(answer))), 0.0
    while coming or plain.running or plain.queue:
        for job in coming[: chance.randint(1, 5)]:
            coming.remove(job)
            home.queue(job)
            plain.queue.append(job)
        assert home.schedule(now) == plain.schedule(now)
        assert home.free == plain.free
        last = min(plain.running.values())
        now = min(now + chance.randint(0, 7), last)
        over = [job for job, end in plain.running.items() if end <= now]
        ending = chance.choice(over or sorted(plain.running))
        home.end(ending)
        plain.free += answer[ending][3]
        del plain.running[ending]


_long = st.tuples(
    st.integers(0, 300).map(lambda minutes: minutes * 60.0),
    st.sampled_from([60.0, 3600.0, 9 * 3600.0]),
    st.sampled_from([3600.0, 12 * 3600.0]),
    st.integers(1, 9),
)


@given(st.lists(_long, min_size=1, max_size=30).map(sorted), rules(), st.integers(1, 6))
@settings(max_examples=150)
def test_a_replay_stays_below_every_ceiling_and_runs_every_job_that_can_run(
    answer: list[_Told], rule: Rule, home: int
) -> None:
    scenario = _scenario(answer, home, rule)
    found = simulate(scenario, "trace", {})
    assert found.cloud is not None
    peaks = {"hour": found.cloud.peak_usd_per_hour, "day": found.cloud.peak_usd_per_day}
    for ceiling in rule.ceilings:
        assert (peaks[ceiling.per] or 0.0) <= ceiling.usd + 0.01
    assert found.cloud.peak_nodes <= rule.target.most
    assert found.home.jobs + found.cloud.jobs + sum(found.refused.values()) == len(answer)
    too_large = sum(nodes > home for *_rest, nodes in answer)
    assert sum(found.refused.values()) <= too_large
    assert found.home.utilisation <= 1.0
    assert found.cloud.utilisation is None or found.cloud.utilisation <= 1.0


@given(st.lists(_long, min_size=1, max_size=30).map(sorted), rules(), st.integers(1, 6))
def test_no_job_spills_before_having_waited_and_costs_are_for_jobs_and_little_else(
    answer: list[_Told], rule: Rule, home: int
) -> None:
    scenario = _scenario(answer, home, rule)
    engine = Engine(scenario, rule)
    engine.run()
    outcomes, spilling = engine.outcomes, engine.spilling
    assert spilling is not None
    spilled = outcomes.ran(Outcome.CLOUD)
    assert all(outcomes.wait(job) >= rule.after for job in spilled)
    node_s = sum(scenario.nodes[job] * scenario.runs[job] for job in spilled)
    rented = sum(scenario.nodes[job] for job in spilled) + spilling.returned * rule.target.most
    beside = rented * (scenario.assumed.boot_s + rule.target.idle)
    assert node_s <= spilling.cloud.node_s + 1e-6
    assert spilling.cloud.node_s <= node_s + beside + 1e-6
    assert (spilling.cloud.usd > 0) == (spilling.cloud.node_s > 0)
