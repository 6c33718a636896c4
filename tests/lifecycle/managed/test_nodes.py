"""Nodes that a cloud runs, as hosts; and the wait until they have joined."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.managed.joining import await_nodes
from gcluster.lifecycle.kubernetes.managed.leaving import is_of_stack
from gcluster.lifecycle.kubernetes.managed.nodes import ApiNode, Seen, with_managed_nodes
from gcluster.lifecycle.operations.repair.instances import Machine, choose, repair_instances
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.stacks.aws.provider import AwsProvider

from .eks_spec import EKS, spec_of

SPEC = spec_of()
PLANNED = AwsProvider().planned_hosts(SPEC, "here")


def node(name: str, *, ready: bool = True, created: str = "1", why: str = "") -> ApiNode:
    return ApiNode(name=name, pool="cpu", created=created, ready=ready, why=why)


def names(*found: ApiNode) -> tuple[list[str], list[str]]:
    wanted, existing = with_managed_nodes(SPEC, PLANNED, found)
    return [host.name for host in wanted], [host.name for host in existing]


def test_a_node_simulates_a_machine_under_its_cloud_s_name() -> None:
    assert names(node("ip-1")) == (["door", "ip-1", "cpu002"], ["ip-1"])


def test_before_any_joined_all_have_the_names_of_the_spec() -> None:
    wanted, existing = with_managed_nodes(SPEC, PLANNED, ())
    assert [(h.name, h.connection) for h in wanted] == [
        ("door", "ssh"),
        ("cpu001", "api"),
        ("cpu002", "api"),
    ]
    assert existing == ()


def test_of_more_than_are_requested_those_that_serve_count() -> None:
    found = (node("ip-1", ready=False), node("ip-2"), node("ip-3"))
    assert names(*found) == (["door", "ip-2", "ip-3"], ["ip-2", "ip-3"])


def test_nodes_of_a_pool_that_the_spec_has_not_are_none_of_its_hosts() -> None:
    other = ApiNode(name="ip-9", pool="gone", ready=True)
    assert names(other)[1] == []


def test_no_role_runs_on_them_and_some_on_machines_of_ours() -> None:
    inventory = ClusterInventory(cluster="demo", hosts=with_managed_nodes(SPEC, PLANNED, ())[0])
    steps = {g.name: g.steps for g in compile_cluster(SPEC, inventory, load_catalog()).groups}
    assert steps["cpu"] == ()
    assert steps["door"] != ()


def waited(*looks: Seen, folder: Path) -> tuple[Diagnostic, ...]:
    """Wait on what the API says at each look, the last one again and again, five minutes apart."""
    answer: Iterator[Seen] = iter(looks)
    last = looks[-1]
    times = count(0.0, 300.0)
    return await_nodes(
        SPEC,
        (),
        PLANNED,
        folder,
        silent,
        ask=lambda: next(answer, last),
        clock=lambda: next(times),
        sleep=lambda _: None,
    )


def test_the_wait_ends_with_the_last_node(tmp_path: Path) -> None:
    first = Seen(exists=True, nodes=(node("ip-1"), node("ip-2", ready=False)))
    assert (
        waited(first, Seen(exists=True, nodes=(node("ip-1"), node("ip-2"))), folder=tmp_path) == ()
    )


def test_what_did_not_join_is_reported_with_its_pool_and_the_api_s_words(tmp_path: Path) -> None:
    late = node("ip-1", ready=False, why="cni plugin not initialized")
    [answer] = waited(Seen(exists=True, nodes=(late,)), folder=tmp_path)
    assert (answer.code, answer.path) == ("GC1042", ("pools", "cpu"))
    assert answer.summary == (
        "pool cpu: 0 of 2 nodes are ready after 15 minutes; 1 did not join; "
        "ip-1 not ready: cni plugin not initialized"
    )


def test_an_api_that_stays_silent_is_reported_once(tmp_path: Path) -> None:
    [answer] = waited(Seen(exists=True, problem="this machine: i/o timeout"), folder=tmp_path)
    assert answer.code == "GC1043"
    assert "this machine: i/o timeout" in answer.summary


@pytest.mark.parametrize(
    ("cloud", "command"),
    [("gke", "gcloud compute instances delete"), ("aks", "az aks nodepool delete-machines")],
)
@pytest.mark.parametrize("words", [["ip-10-40-0-11.ec2.internal"], ["cpu001", "door"], ["cpu"]])
def test_repair_of_a_node_pool_s_node_reports_what_to_do_instead(
    words: list[str], cloud: str, command: str
) -> None:
    spec = spec_of(EKS.replace("control_plane: eks", f"control_plane: {cloud}"), check=False)
    with pytest.raises(LifecycleError) as refused:
        is_of_stack(spec, words)
    [message] = refused.value.diagnostics
    assert message.code == "GC1046"
    assert command in message.hint


def test_nodes_of_eks_are_repaired_apart_from_machines_of_ours() -> None:
    assert not is_of_stack(SPEC, [])
    assert not is_of_stack(SPEC, ["door"])
    assert is_of_stack(SPEC, ["ip-10-40-0-11.ec2.internal", "cpu001"])
    with pytest.raises(LifecycleError) as refused:
        is_of_stack(SPEC, ["door", "ip-10-40-0-11.ec2.internal"])
    assert refused.value.diagnostics[0].code == "GC1046"


def test_machines_are_selected_by_the_api_s_name_or_the_spec_s() -> None:
    one = Machine(name="cpu001", pool="cpu", id="i-1", node="ip-1.ec2.internal")
    two = Machine(name="cpu002", pool="cpu", id="i-2")
    assert choose(["ip-1.ec2.internal", "cpu[001-002]"], (one, two), "demo") == (one, two)
    assert two.shown == "cpu002"
    with pytest.raises(LifecycleError) as refused:
        choose(["ip-9"], (one, two), "demo")
    assert refused.value.diagnostics[0].code == "GC908"


def test_a_node_of_eks_that_may_not_be_recreated_is_left_before_any_query() -> None:
    nothing = cast("Any", None)
    with pytest.raises(LifecycleError) as refused:
        repair_instances(nothing, ["ip-1"], silent, confirm=nothing, replace=False)
    assert "--no-replace" in refused.value.diagnostics[0].hint
