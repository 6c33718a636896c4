"""A plan says what would be done, where and why, and the same thing every time."""

from __future__ import annotations

import msgspec
from tests.free_port import free_port
from tests.lifecycle.sample_cluster import METAL, SampleCluster

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.planning.changes import Plan
from gcluster.lifecycle.planning.plan import NOT_THERE, make_plan


def _plan(sample: SampleCluster) -> Plan:
    return make_plan(sample.open())


def _effects(plan: Plan) -> dict[str, str]:
    return {c.resource.name: c.effect for site in plan.sites for c in site.changes}


def test_a_new_cluster_is_all_to_be_created(sample: SampleCluster) -> None:
    assert set(_effects(_plan(sample)).values()) == {"create"}


def test_every_change_of_a_resource_has_a_reason(sample: SampleCluster) -> None:
    assert all(c.reason for site in _plan(sample).sites for c in site.changes)


def test_the_hosts_of_a_step_are_folded_into_one_line(sample: SampleCluster) -> None:
    lines = [c for c in _plan(sample).steps if c.pool == "gpu"]
    assert {(c.hosts, c.count) for c in lines} == {("gpu[001-003]", 3)}
    assert len({c.step for c in lines}) == len(lines)


def test_steps_of_nodes_that_are_not_there_disturb_no_job(sample: SampleCluster) -> None:
    assert {(c.reason, c.disruption) for c in _plan(sample).steps} == {(NOT_THERE, "none")}


def test_a_cluster_that_is_as_it_should_be_has_an_empty_plan(sample: SampleCluster) -> None:
    sample.up()
    assert _plan(sample).is_empty


def test_growing_plans_steps_for_new_nodes_and_in_place_changes_for_the_old(
    sample: SampleCluster,
) -> None:
    sample.up()
    sample.write(count=5)
    plan = _plan(sample)
    new = {c.hosts for c in plan.steps if c.reason == NOT_THERE}
    old = [c for c in plan.steps if c.reason != NOT_THERE]
    assert new == {"gpu[004-005]"}
    assert {c.step: c.disruption for c in old}["slurm.configure"] == "in-place"
    assert {c.reason for c in old} == {"its inputs changed"}


def test_shrinking_plans_the_deletion_of_the_last_nodes_only(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=1)
    assert {n for n, effect in _effects(_plan(sample)).items() if effect == "delete"} == {
        "gpu002",
        "gpu003",
    }


def test_a_pool_that_skips_a_name_loses_that_machine_and_no_other(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=2, pool=", skip: gpu001")
    assert {n for n, effect in _effects(_plan(sample)).items() if effect != "keep"} == {"gpu001"}
    sample.write(count=3, pool=", skip: gpu001")
    changed = {n: effect for n, effect in _effects(_plan(sample)).items() if effect != "keep"}
    assert changed == {"gpu001": "delete", "gpu004": "create"}


def test_the_same_cluster_gives_the_same_plan(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=5)
    first, second = (msgspec.structs.replace(_plan(sample), observed_age_s=0) for _ in range(2))
    assert msgspec.json.encode(first) == msgspec.json.encode(second)


def test_simulated_nodes_cost_nothing(sample: SampleCluster) -> None:
    assert _plan(sample).usd_per_hour == 0


def test_a_host_that_does_not_answer_is_named_and_its_steps_are_not_guessed(
    sample: SampleCluster,
) -> None:
    port = free_port()
    sample.path.write_text(METAL.format(port=port), encoding="utf-8")
    plan = make_plan(open_cluster(str(sample.path)))
    answer = f"port {port}: connection refused: is sshd running?"
    assert plan.unreachable == (f"gpu001: 127.0.0.2 {answer}", f"head01: 127.0.0.1 {answer}")
    assert plan.steps == ()
    assert not plan.is_empty


def test_the_price_of_machines_without_one_is_unknown_and_not_zero(sample: SampleCluster) -> None:
    sample.path.write_text(METAL.format(port=free_port()), encoding="utf-8")
    assert make_plan(open_cluster(str(sample.path))).usd_per_hour is None
