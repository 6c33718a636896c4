"""What rules out a move for good, in addition to the golden cases."""

from __future__ import annotations

from gcluster.lifecycle.operations.burst.policy import (
    Ceiling,
    Home,
    PendingJob,
    Rented,
    Rule,
    Situation,
    Target,
    decide,
    going_back,
    to_release,
)
from gcluster.lifecycle.operations.burst.policy.rule import PurchaseOption


def _rule(*, software: tuple[str, ...] = (), usd: float | None = 50.0, ceilings: int = 1) -> Rule:
    return Rule(
        partition="train",
        after=60.0,
        target=Target(
            pool="burst",
            site="east",
            machine="p5.48xlarge",
            gpu_model="H100",
            gpus_per_node=8,
            features=frozenset(),
            most=4,
            purchase_options=(PurchaseOption(key="on-demand", usd_per_hour=usd),),
            software_differs=software,
            idle=600.0,
        ),
        ceilings=(Ceiling(where="max_usd_per_hour", usd=500.0, per="hour"),) * ceilings,
        gpu_models=frozenset({"H100"}),
    )


def _job(
    name: str = "1", *, since: float = 0.0, nodes: int = 1, returned: bool = False
) -> PendingJob:
    return PendingJob(id=name, eligible_since=since, nodes=nodes, time_limit=60, returned=returned)


def test_a_job_stays_where_the_versions_differ() -> None:
    rule = _rule(software=("driver 580 and 570",))
    decision = decide(rule, _job(), Situation(now=100.0))
    assert decision.against is not None
    assert (decision.against.word, decision.against.lasts) == ("software", True)
    assert "driver 580 and 570" in decision.against.text


def test_an_unknown_price_stops_a_job_where_there_is_a_ceiling_and_only_there() -> None:
    bound = decide(_rule(usd=None), _job(), Situation(now=100.0))
    assert bound.against is not None
    assert bound.against.word == "price"
    free = decide(_rule(usd=None, ceilings=0), _job(), Situation(now=100.0))
    assert (free.spills, free.adds_usd_per_hour) == (True, None)


def test_nodes_that_are_always_there_take_a_job_and_cost_it_nothing() -> None:
    always = Rented(node="burst-1", idle_since=0.0, always=True)
    decision = decide(_rule(), _job(), Situation(now=100.0, rented=(always,)))
    assert (decision.new_nodes, decision.reuses) == (0, ("burst-1",))
    assert decision.adds_usd_per_hour == 0


def test_jobs_go_back_that_could_start_at_home_now_the_oldest_first() -> None:
    moved = [_job("1", since=30.0), _job("2", since=10.0, nodes=2), _job("3", since=20.0)]
    assert going_back(moved, Home(free_nodes=3, oldest_waiting=None)) == ("2", "3")


def test_a_job_goes_back_overtaking_no_job_that_waits_at_home() -> None:
    moved = [_job("1", since=30.0), _job("2", since=10.0)]
    assert going_back(moved, Home(free_nodes=3, oldest_waiting=20.0)) == ("2",)


def test_a_job_goes_back_once() -> None:
    assert going_back([_job(returned=True)], Home(free_nodes=3, oldest_waiting=None)) == ()


def test_idle_nodes_are_given_back_in_time_and_those_of_the_least_count_never() -> None:
    rented = (
        Rented(node="busy"),
        Rented(node="just", idle_since=401.0),
        Rented(node="long", idle_since=400.0),
        Rented(node="always", idle_since=0.0, always=True),
    )
    assert to_release(_rule(), rented, 1000.0) == ("long",)
