"""Elastic nodes on OCI: all or none, once for a token, never mixed with another option."""

from __future__ import annotations

import pytest
from oci_cases import plan_of
from oci_double import Oracle

from gcluster.stacks.oci.elastic import grow, retry_token, shrink
from gcluster.stacks.oci.plan.types import SitePlan
from gcluster.stacks.provider import ProviderError

MACHINE = "BM.GPU.H200.8"
FIRST, SECOND = "on-demand-ad2", "on-demand-ad1"
TOKEN = "intent-1"  # noqa: S105  # no secret


def hosts(oracle: Oracle) -> list[str]:
    return sorted(m["freeformTags"].get("gcluster-host", "") for m in oracle.existing())


def ready(oracle: Oracle) -> SitePlan:
    oracle.configure("train", FIRST)
    oracle.configure("train", SECOND)
    return plan_of(MACHINE)


def test_all_nodes_of_a_burst_are_launched_with_their_names_and_the_token(oracle: Oracle) -> None:
    plan = ready(oracle)
    started = grow(oracle.api(), plan, plan.pool("train"), ["train002", "train003"], TOKEN)
    assert [machine.host for machine in started] == ["train002", "train003"]
    [body, _] = oracle.posted("compute/instances")
    assert body["instanceConfigurationId"].endswith(FIRST)
    assert body["availabilityDomain"] == "Uocm:US-ASHBURN-AD-2"
    assert body["freeformTags"]["gcluster-token"] == TOKEN
    assert body["freeformTags"]["gcluster-pool"] == "train"


def test_the_same_burst_again_launches_nothing(oracle: Oracle) -> None:
    plan = ready(oracle)
    grow(oracle.api(), plan, plan.pool("train"), ["train002"], TOKEN)
    again = grow(oracle.api(), plan, plan.pool("train"), ["train002"], TOKEN)
    assert [machine.host for machine in again] == ["train002"]
    assert len(oracle.posted("compute/instances")) == 1


def test_a_launch_that_was_without_a_response_is_the_same_machine_when_queried_again(
    oracle: Oracle,
) -> None:
    plan = ready(oracle)
    grow(oracle.api(), plan, plan.pool("train"), ["train002"], TOKEN)
    lost = next(iter(oracle.machines.values()))
    tags, lost["freeformTags"] = lost["freeformTags"], {}  # not listed yet: OCI lags behind
    grow(oracle.api(), plan, plan.pool("train"), ["train002"], TOKEN)
    lost["freeformTags"] = tags
    assert hosts(oracle) == ["train002"]


def test_a_domain_without_capacity_is_left_for_the_next_and_nothing_stays_behind(
    oracle: Oracle,
) -> None:
    plan = ready(oracle)
    oracle.full = {next(name for name in oracle.configurations if name.endswith(FIRST))}
    started = grow(oracle.api(), plan, plan.pool("train"), ["train002", "train003"], TOKEN)
    assert {machine.offer for machine in started} == {SECOND}
    assert hosts(oracle) == ["train002", "train003"]


def test_fewer_than_requested_are_undone(oracle: Oracle) -> None:
    plan = ready(oracle)
    oracle.room = 1
    with pytest.raises(ProviderError) as caught:
        grow(oracle.api(), plan, plan.pool("train"), ["train002", "train003"], TOKEN)
    assert caught.value.diagnostics[0].code == "GC960"
    assert oracle.existing() == []


def test_a_burst_that_was_undone_may_be_tried_again_with_its_token(oracle: Oracle) -> None:
    plan = ready(oracle)
    oracle.room = 1
    with pytest.raises(ProviderError):
        grow(oracle.api(), plan, plan.pool("train"), ["train002", "train003"], TOKEN)
    oracle.room = 10
    started = grow(oracle.api(), plan, plan.pool("train"), ["train002", "train003"], TOKEN)
    assert {machine.id for machine in started} == {m["id"] for m in oracle.existing()}
    assert hosts(oracle) == ["train002", "train003"]


def test_nodes_that_come_later_are_bought_as_those_that_are_there(oracle: Oracle) -> None:
    oracle.configure("train", FIRST)
    oracle.configure("train", SECOND)
    plan = plan_of(MACHINE, mixed=False)
    oracle.add({"gcluster-pool": "train", "gcluster-host": "train001", "gcluster-offer": SECOND})
    started = grow(oracle.api(), plan, plan.pool("train"), ["train002"], TOKEN)
    assert [machine.offer for machine in started] == [SECOND]


def test_without_its_configuration_a_burst_has_to_run_up(oracle: Oracle) -> None:
    plan = plan_of(MACHINE)
    with pytest.raises(ProviderError) as caught:
        grow(oracle.api(), plan, plan.pool("train"), ["train002"], TOKEN)
    assert caught.value.diagnostics[0].code == "GC978"


def test_only_elastic_nodes_are_given_back(oracle: Oracle) -> None:
    plan = ready(oracle)
    oracle.add({"gcluster-pool": "train", "gcluster-host": "train001"})
    [machine] = grow(oracle.api(), plan, plan.pool("train"), ["train002"], TOKEN)
    with pytest.raises(ProviderError):
        shrink(oracle.api(), plan, ["train001", "train002"])
    assert hosts(oracle) == ["train001", "train002"]
    assert shrink(oracle.api(), plan, ["train002"]) == {"train002": machine.id}
    assert hosts(oracle) == ["train001"]


def test_a_retry_token_is_short_enough_and_another_for_each_node_and_try() -> None:
    tokens = {retry_token("t" * 100, host, "o", ended) for host in "ab" for ended in (0, 1)}
    assert len(tokens) == 4  # two nodes, two tries
    assert {len(token) for token in tokens} == {64}
