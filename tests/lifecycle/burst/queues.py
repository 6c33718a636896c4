"""Rules, queues and moments for the laws of the spill policy: few and small, so that they clash."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec.structs import replace

from gcluster.lifecycle.operations.burst.policy import (
    Ceiling,
    PendingJob,
    Rented,
    Rule,
    Situation,
    Target,
)
from gcluster.lifecycle.operations.burst.policy.rule import PurchaseOption

HOUR = 3600.0
NOW = 40 * 86400.0 + 17 * HOUR
"""A moment in the afternoon: rents go over midnight."""


def target(*, most: int, prices: Sequence[float]) -> Target:
    """Return a pool of nodes with eight GPUs that can be bought at these prices (USD per hour)."""
    return Target(
        pool="burst",
        site="east",
        machine="p5.48xlarge",
        gpu_model="H100",
        gpus_per_node=8,
        features=frozenset({"burst"}),
        most=most,
        purchase_options=tuple(
            PurchaseOption(key=f"r{n}", usd_per_hour=usd) for n, usd in enumerate(prices)
        ),
    )


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Return a rule of a pool of up to 8 nodes, with ceilings that bind and some that don't."""
    prices = draw(st.lists(st.sampled_from([10.0, 25.0, 40.0]), min_size=1, max_size=3))
    hour = draw(st.none() | st.sampled_from([45.0, 100.0, 1000.0]))
    day = draw(st.none() | st.sampled_from([120.0, 600.0, 5000.0]))
    ceilings = [("hour", hour), ("day", day)]
    return Rule(
        partition="train",
        after=1800.0,
        target=replace(
            target(most=draw(st.integers(1, 8)), prices=prices),
            start_up=draw(st.sampled_from([0.0, 300.0])),
            idle=draw(st.sampled_from([0.0, 600.0])),
        ),
        ceilings=tuple(
            Ceiling(where=f"max_usd_per_{per}", usd=usd, per="hour" if per == "hour" else "day")
            for per, usd in ceilings
            if usd is not None
        ),
        gpu_models=frozenset({"H100"}),
    )


@st.composite
def jobs(draw: st.DrawFn, number: int) -> PendingJob:
    """Return a job of this number, which has waited for up to two hours."""
    limit = draw(st.none() | st.sampled_from([600.0, HOUR, 7 * HOUR, 30 * HOUR]))
    return PendingJob(
        id=f"{number:03d}",
        eligible_since=NOW - draw(st.integers(0, 7200)),
        nodes=draw(st.integers(1, 9)),
        gpus_per_node=draw(st.sampled_from([0, 8])),
        time_limit=limit,
        held=draw(st.sampled_from(["", "", "", "Dependency"])),
    )


@st.composite
def queues(draw: st.DrawFn) -> list[PendingJob]:
    """Return up to ten jobs."""
    return [draw(jobs(number)) for number in range(draw(st.integers(1, 10)))]


@st.composite
def standings(draw: st.DrawFn, rule: Rule) -> Situation:
    """Return a moment that a policy may have brought about: what runs is below the ceilings."""
    rented = []
    for number in range(draw(st.integers(0, rule.target.most))):
        idle = draw(st.booleans())
        lasts = rule.target.idle if idle else draw(st.sampled_from([HOUR, 9 * HOUR]))
        rented.append(
            Rented(
                node=f"n{number}",
                usd_per_hour=draw(st.sampled_from([10.0, 25.0])),
                until=NOW + lasts,
                idle_since=NOW if idle else None,
            )
        )
    spent = draw(st.sampled_from([0.0, 50.0, 100.0]))
    situation = Situation(now=NOW, rented=tuple(rented), spent_today_usd=spent)
    return situation if not over(rule, bill(situation, [])) else Situation(now=NOW)


class Bill:
    """What is paid at most: by hand, minute by minute, so that it shares nothing with the books."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.rate: dict[int, float] = {}
        self.days: dict[int, float] = {}

    def add(self, begins: float, until: float, usd_per_hour: float) -> None:
        """Add a rent whose ends are whole minutes."""
        for minute in range(int(begins // 60), int(until // 60)):
            self.rate[minute] = self.rate.get(minute, 0.0) + usd_per_hour
            self.days[minute // 1440] = self.days.get(minute // 1440, 0.0) + usd_per_hour / 60


def bill(situation: Situation, added: list[tuple[float, float]]) -> Bill:
    """Return the worst case of a moment and of (until, USD per hour) that come on top."""
    answer = Bill()
    answer.days[int(situation.now // 86400)] = situation.spent_today_usd
    for node in situation.rented:
        answer.add(situation.now, node.until or situation.now, node.usd_per_hour)
    for until, usd in added:
        answer.add(situation.now, min(until, situation.now + 3 * 86400), usd)
    return answer


def over(rule: Rule, answer: Bill) -> list[str]:
    """Return the ceilings that a bill is above."""
    most = {
        "hour": max(answer.rate.values(), default=0.0),
        "day": max(answer.days.values(), default=0),
    }
    return [each.where for each in rule.ceilings if most[each.per] > each.usd + 0.01]
