"""What differs between compiled and live: nothing that isn't ours, nothing with work in it."""

from __future__ import annotations

import msgspec
import pytest

from gcluster.lifecycle.kubernetes.difference import Difference, difference
from gcluster.lifecycle.kubernetes.objects import DIGEST, DesiredObjects, ObjectKey
from gcluster.lifecycle.kubernetes.observe import NOTHING, Live, LiveNode

from .spec import TEXT, wanted_of

HOSTS = ("head", "gpu001", "gpu002")
POOL = "gcluster.local/pool"


@pytest.fixture(scope="module")
def compiled() -> DesiredObjects:
    """What the trial cluster is to have."""
    return wanted_of()


def applied(compiled: DesiredObjects) -> Live:
    """Return a cluster that is as compiled."""
    nodes = {
        name: LiveNode(
            labels={"kubernetes.io/os": "linux", **answer["labels"]},
            taints=tuple(answer["taints"]),
            ready=True,
        )
        for name, answer in compiled.nodes.items()
    }
    plane = LiveNode(labels={POOL: "head"}, taints=(), ready=True)
    return Live(
        objects={
            key: made["metadata"]["annotations"][DIGEST] for key, made in compiled.objects.items()
        },
        nodes={"head": plane, **nodes},
    )


def of(compiled: DesiredObjects, live: Live) -> Difference:
    return difference(compiled, live, HOSTS)


def with_node(live: Live, name: str, node: LiveNode) -> Live:
    return msgspec.structs.replace(live, nodes={**live.nodes, name: node})


def test_an_empty_cluster_lacks_everything_in_the_order_it_is_applied(
    compiled: DesiredObjects,
) -> None:
    found = of(compiled, NOTHING)
    assert found.missing == tuple(compiled.objects)
    assert found.missing[0].kind == "Namespace"
    assert (found.other, found.pruned, found.marks) == ((), (), {})


def test_what_was_applied_differs_in_nothing(compiled: DesiredObjects) -> None:
    assert of(compiled, applied(compiled)).is_empty


def test_what_is_compiled_otherwise_is_changed(compiled: DesiredObjects) -> None:
    more = wanted_of(TEXT.replace("priority: 1000", "priority: 900"))
    assert of(more, applied(compiled)).other == (
        ObjectKey("scheduling.k8s.io", "PriorityClass", "", "high"),
    )


def test_a_plan_names_each_object_in_full_however_short_its_words_are(
    compiled: DesiredObjects,
) -> None:
    plan = of(compiled, NOTHING).plan()
    assert len(plan.changes) < len(compiled.objects) == len(plan.exact)
    for key, made in compiled.objects.items():
        digest = made["metadata"]["annotations"][DIGEST]
        assert any(key.name in line and line.endswith(f" {digest}") for line in plan.exact)


@pytest.mark.parametrize("priority", [900, 901])
def test_what_an_object_would_be_is_in_a_plan_where_its_words_are_the_same(
    compiled: DesiredObjects, priority: int
) -> None:
    was, now = (
        of(wanted_of(TEXT.replace("priority: 1000", f"priority: {n}")), applied(compiled)).plan()
        for n in (800, priority)
    )
    assert was.changes == now.changes
    assert was.exact != now.exact


def test_labels_and_what_goes_are_in_a_plan_in_full(compiled: DesiredObjects) -> None:
    gone = LiveNode(labels={POOL: "gpu"}, taints=(), ready=True)
    bare = LiveNode(labels={}, taints=(), ready=True)
    live = with_node(with_node(applied(compiled), "gpu009", gone), "gpu001", bare)
    key = ObjectKey("", "ConfigMap", "apps", "old")
    live = msgspec.structs.replace(live, objects={**live.objects, key: "x"})
    exact = of(compiled, live).plan().exact
    assert any(line.startswith("mark node gpu001: ") and POOL in line for line in exact)
    assert {"delete ConfigMap apps/old", "forget node gpu009"} <= set(exact)


def test_what_is_compiled_no_more_is_pruned_and_namespaces_go_last(
    compiled: DesiredObjects,
) -> None:
    more = wanted_of(TEXT.replace("accounts: {", "accounts: {biology: {qos: [low]}, "))
    pruned = of(compiled, applied(more)).pruned
    assert {key.namespace or key.name for key in pruned} == {"biology"}
    assert pruned[-1] == ObjectKey("", "Namespace", "", "biology")


def test_a_namespace_with_work_in_it_stays_and_is_reported(compiled: DesiredObjects) -> None:
    more = wanted_of(TEXT.replace("accounts: {", "accounts: {biology: {qos: [low]}, "))
    kept = of(compiled, applied(more)).keeping({"biology": ["pod/one", "job.batch/two"]})
    assert kept.emptied == []
    assert kept.plan().held_back == ("namespace biology stays: pod/one, job.batch/two in it",)


def test_an_object_that_was_removed_is_added_again(compiled: DesiredObjects) -> None:
    live = applied(compiled)
    gone = next(key for key in live.objects if key.kind == "ResourceQuota")
    objects = {key: digest for key, digest in live.objects.items() if key != gone}
    assert of(compiled, msgspec.structs.replace(live, objects=objects)).missing == (gone,)


def test_labels_are_set_and_those_of_ours_that_are_wanted_no_more_go(
    compiled: DesiredObjects,
) -> None:
    labels = {POOL: "gpu", "partition.gcluster.local/old": "true", "kubernetes.io/os": "linux"}
    node = LiveNode(labels=labels, taints=(), ready=True)
    marks = of(compiled, with_node(applied(compiled), "gpu001", node)).marks
    assert set(marks) == {"gpu001"}
    changed = marks["gpu001"].labels
    assert changed["partition.gcluster.local/main"] == "true"
    assert changed["partition.gcluster.local/old"] is None
    assert POOL not in changed
    assert "kubernetes.io/os" not in changed


def test_a_taint_of_ours_goes_and_a_cordon_stays(compiled: DesiredObjects) -> None:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    ours = {"key": "gcluster.local/no-partition", "value": "true", "effect": "NoSchedule"}
    live = applied(compiled)
    node = msgspec.structs.replace(live.nodes["gpu001"], taints=(cordon, ours))
    marks = of(compiled, with_node(live, "gpu001", node)).marks
    assert marks["gpu001"].taints == ("gcluster.local/no-partition:NoSchedule-",)


def test_a_taint_of_the_spec_goes_with_it_and_another_stays(compiled: DesiredObjects) -> None:
    dropped = {"key": "example.edu/x", "effect": "NoSchedule"}
    others = {"key": "example.com/y", "effect": "NoSchedule"}
    live = applied(compiled)
    known = live.nodes["gpu001"]
    labels = known.labels | {"taint.gcluster.local/example.edu_x": "true"}
    node = msgspec.structs.replace(known, taints=(dropped, others), labels=labels)
    marks = of(compiled, with_node(live, "gpu001", node)).marks
    assert marks["gpu001"].taints == ("example.edu/x:NoSchedule-",)
    assert marks["gpu001"].labels == {"taint.gcluster.local/example.edu_x": None}


def test_a_node_that_the_spec_dropped_is_removed_and_a_foreign_one_is_not(
    compiled: DesiredObjects,
) -> None:
    live = applied(compiled)
    live = with_node(live, "gpu003", live.nodes["gpu002"])
    live = with_node(live, "virtual", LiveNode(labels={}, taints=(), ready=True))
    assert of(compiled, live).forgotten == ("gpu003",)


def test_a_plan_names_kinds_and_a_few_names(compiled: DesiredObjects) -> None:
    words = of(compiled, NOTHING).plan().changes
    assert words[0] == "add Namespace: gcluster-system, physics"
    assert any(line.startswith("add ResourceQuota: physics/") for line in words)
