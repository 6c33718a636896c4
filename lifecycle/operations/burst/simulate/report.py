"""What a replay comes to: waits, money, use of both sides, who moved and who could not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

import msgspec

from ..policy.rule import HOUR_S
from .engine import Engine
from .outcomes import Outcome, Outcomes
from .scenario import Scenario


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """How long jobs waited, in seconds, from when they could have started."""

    jobs: int
    mean: float
    p50: float
    p95: float
    max: float


class HomeUse(msgspec.Struct, frozen=True, kw_only=True):
    """The partition's own nodes."""

    nodes: int
    jobs: int
    utilisation: float
    """Share of their time, from the first submission to the last end, that they ran jobs."""


class CloudUse(msgspec.Struct, frozen=True, kw_only=True):
    """The pool that jobs spill to."""

    pool: str
    most_nodes: int
    """As many as it may have."""
    peak_nodes: int
    jobs: int
    returned: int
    """Jobs that went back home before they started."""
    node_hours: float
    """Rented, nodes that are always there not counted."""
    utilisation: float | None
    """Share of them that ran jobs; the rest is booting and idle time. None: nothing was rented."""
    usd: float | None
    """None: the price of a node isn't known."""
    peak_usd_per_hour: float | None
    peak_usd_per_day: float | None
    """Of the dearest day (UTC)."""
    stayed: dict[str, int]
    """Jobs that had waited long enough and ran at home, by the last reason against the move."""


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """A replay with the policy, and the same trace without it."""

    trace: str
    partition: str
    jobs: int
    days: float
    """From the first submission to the last end."""
    waits: Waits
    waits_home: Waits
    waits_cloud: Waits
    waits_without: Waits | None
    """Of all jobs where nothing spills; None: nothing spills anyway."""
    home: HomeUse
    cloud: CloudUse | None
    """None: the partition's jobs don't spill."""
    refused: dict[str, int]
    """Jobs that could run nowhere, by the reason against the move; "home": too large for it."""
    left_out: dict[str, int]
    """Lines of the trace that are not replayed, by why."""
    processor: str
    processors_per_node: int
    boot_s: float
    cut: int
    """Jobs that ran longer than they had requested: they end at their limit here."""
    unlimited: int
    """Jobs without a limit in the trace: their run time is used."""


def simulate(scenario: Scenario, trace: str, left_out: dict[str, int]) -> Simulation:
    """Replay a scenario, with its policy and without.

    Args:
        scenario: what is replayed.
        trace: name of its file.
        left_out: lines of the trace that are no part of it.
    """
    engine = Engine(scenario, scenario.rule)
    engine.run()
    outcomes = engine.outcomes
    home, cloud = outcomes.ran(Outcome.HOME), outcomes.ran(Outcome.CLOUD)
    ran = sorted([*home, *cloud])
    begins = min(scenario.submits)
    lasts = max((outcomes.ended[job] for job in ran), default=begins) - begins
    return Simulation(
        trace=trace,
        partition=scenario.partition,
        jobs=len(scenario.nodes),
        days=lasts / HOUR_S / 24,
        waits=_waits(outcomes, ran),
        waits_home=_waits(outcomes, home),
        waits_cloud=_waits(outcomes, cloud),
        waits_without=_without(scenario),
        home=HomeUse(
            nodes=scenario.home_nodes,
            jobs=len(home),
            utilisation=_share(_node_s(scenario, home), scenario.home_nodes * lasts) or 0.0,
        ),
        cloud=_cloud(engine, len(cloud)),
        refused=dict(outcomes.refused),
        left_out=left_out,
        processor=scenario.processor,
        processors_per_node=scenario.processors_per_node,
        boot_s=scenario.assumed.boot_s,
        cut=scenario.cut,
        unlimited=scenario.unlimited,
    )


def _without(scenario: Scenario) -> Waits | None:
    if scenario.rule is None:
        return None
    engine = Engine(scenario, None)
    engine.run()
    return _waits(engine.outcomes, engine.outcomes.ran(Outcome.HOME))


def _cloud(engine: Engine, jobs: int) -> CloudUse | None:
    spilling = engine.spilling
    if spilling is None:
        return None
    cloud, priced = spilling.cloud, not spilling.lacks_price
    return CloudUse(
        pool=spilling.rule.target.pool,
        most_nodes=spilling.rule.target.most,
        peak_nodes=cloud.peak_nodes,
        jobs=jobs,
        returned=spilling.returned,
        node_hours=cloud.node_s / HOUR_S,
        utilisation=_share(spilling.job_node_s, cloud.node_s),
        usd=cloud.usd if priced else None,
        peak_usd_per_hour=cloud.peak_usd_per_hour if priced else None,
        peak_usd_per_day=cloud.peak_usd_per_day if priced else None,
        stayed=dict(spilling.stayed.most_common()),
    )


def _node_s(scenario: Scenario, jobs: Iterable[int]) -> float:
    return sum(scenario.nodes[job] * scenario.runs[job] for job in jobs)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _waits(outcomes: Outcomes, jobs: Sequence[int]) -> Waits:
    """Return the figures of some jobs; percentiles by nearest rank, 0 where there is no job."""
    waits = sorted(outcomes.wait(job) for job in jobs)
    if not waits:
        return Waits(jobs=0, mean=0.0, p50=0.0, p95=0.0, max=0.0)
    return Waits(
        jobs=len(waits),
        mean=sum(waits) / len(waits),
        p50=waits[ceil(0.5 * len(waits)) - 1],
        p95=waits[ceil(0.95 * len(waits)) - 1],
        max=waits[-1],
    )
