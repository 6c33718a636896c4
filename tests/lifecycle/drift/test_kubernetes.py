"""What an API server said of nodes and objects (1.35.4, by kubectl), and what of it is drift."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.kubernetes.spec import TEXT, hosts_of, spec_of, wanted_of

from gcluster.lifecycle.kubernetes.objects import ObjectKey
from gcluster.lifecycle.status.drift.fix import restored_objects
from gcluster.lifecycle.status.drift.scheduler import SlurmDrift, scheduler_drift
from gcluster.lifecycle.status.drift.values import SchedulerFindings
from gcluster.schemas.catalog import load_catalog

WANTED = wanted_of()
JOINS = {"gpu001": ["kubernetes.join"], "gpu002": ["kubernetes.join"]}
QUOTA = ObjectKey("", "ResourceQuota", "physics", "gpus")
OURS = {
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:metadata": {"f:annotations": {"f:gcluster.local/compiled": {}}}},
    "manager": "gcluster",
    "operation": "Apply",
    "time": "2026-11-22T17:13:32Z",
}
COUNTED = {
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:status": {"f:hard": {".": {}, "f:requests.nvidia.com/gpu": {}}}},
    "manager": "kube-controller-manager",
    "operation": "Update",
    "subresource": "status",
    "time": "2026-11-22T17:13:50Z",
}
PATCHED = {
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:hard": {"f:requests.nvidia.com/gpu": {}}}},
    "manager": "kubectl-patch",
    "operation": "Update",
    "time": "2026-11-22T17:13:50Z",
}
LABELLED = PATCHED | {"fieldsV1": {"f:metadata": {"f:labels": {"f:foo": {}}}}}
READY = ("True", "kubelet is posting ready status", "2026-11-22T10:00:00Z", "", "", "", "", "")
GONE = ("Unknown", "Kubelet stopped posting node status.", "2026-11-22T11:00:00Z", *[""] * 5)


def cordoned(reason: str, since: str = "") -> tuple[str, ...]:
    return (*READY[:3], "true", reason, since, "", "")


def printed(
    nodes: Mapping[str, Sequence[str]] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    without: Sequence[ObjectKey] = (),
    writers: Sequence[object] = (OURS, COUNTED),
) -> str:
    """Return an answer: both nodes ready and all applied, but for what a test says."""
    answer = {"gpu001": READY, "gpu002": READY} | dict(nodes or {})
    taints = '[{"effect":"NoSchedule","key":"node.kubernetes.io/unreachable"}]'
    marks = {name: json.dumps(WANTED.nodes[name]["labels"] | (labels or {})) for name in answer}
    rows = [
        "\x1f".join((name, *row, "", marks[name], "", "", taints)) for name, row in answer.items()
    ]
    objects = [
        "\x1f".join((made["apiVersion"], key.kind, key.namespace, key.name, json.dumps(written)))
        for key, made in WANTED.objects.items()
        if key not in without
        for written in [list(writers) if key == QUOTA else [OURS]]
    ]
    text = ["".join(f"{row}\x1e" for row in table) for table in (rows, objects)]
    return f"{text[0]}\x1d{text[1]}\x1d\n"


def judged(*texts: str) -> SchedulerFindings:
    spec = spec_of()
    look = scheduler_drift(spec, hosts_of(spec), load_catalog())
    return look.judge({f"head{n}": text for n, text in enumerate(texts)}, JOINS)


def test_right_after_up_nothing_has_drifted() -> None:
    assert judged(printed()) == SchedulerFindings()


@pytest.mark.parametrize(
    ("row", "now", "when", "hint", "fixable"),
    [
        (cordoned("link 3", "2026-11-22T10:00:00Z"), "cordoned: link 3", "2026-11-22T10:00:00Z",
         "gcluster resume trial gpu001", False),
        (cordoned(""), "cordoned", "", "gcluster resume trial gpu001", False),
        (cordoned("gcluster-health: gpu-count: 7 of 8 GPUs"),
         "cordoned: gcluster-health: gpu-count: 7 of 8 GPUs", "", "gcluster repair trial gpu001",
         False),
        (cordoned("gcluster up: run 7"), "cordoned: gcluster up: run 7", "",
         "gcluster up goes on with it", False),
        (GONE, "not ready: Kubelet stopped posting node status.", "2026-11-22T11:00:00Z", "", True),
        ((*GONE[:3], "true", "", "", "", ""), "not ready, cordoned", "2026-11-22T11:00:00Z",
         "gcluster resume trial gpu001", False),
    ],
)  # fmt: skip
def test_a_node_out_of_service_is_reported_with_why_and_since_when(
    row: tuple[str, ...], now: str, when: str, hint: str, fixable: bool
) -> None:
    (drift,) = judged(printed({"gpu001": row})).drifts
    assert (drift.where, drift.kind, drift.now, drift.when) == ("gpu001", "state", now, when)
    assert (drift.hint, drift.fixable) == (hint, fixable)
    assert drift.steps == (("kubernetes.join",) if fixable else ())


def test_a_node_whose_object_was_deleted_is_reported() -> None:
    gpu002 = printed().split("\x1e")[1]
    (drift,) = judged(printed().replace(f"{gpu002}\x1e", "")).drifts
    assert (drift.where, drift.now) == ("gpu002", "the scheduler does not know it")


def test_an_object_that_was_deleted_is_reported() -> None:
    (drift,) = judged(printed(without=[QUOTA])).drifts
    assert (drift.where, drift.name, drift.now) == ("ResourceQuota", "physics/gpus", "not there")


def test_a_field_of_ours_that_another_wrote_is_reported_with_who_and_when() -> None:
    (drift,) = judged(printed(writers=[OURS, COUNTED, PATCHED])).drifts
    assert (drift.where, drift.name, drift.now) == ("ResourceQuota", "physics/gpus", "changed")
    assert (drift.who, drift.when) == ("kubectl-patch", "2026-11-22T17:13:50Z")


def test_what_others_added_is_theirs() -> None:
    assert judged(printed(writers=[OURS, LABELLED])).drifts == ()


def test_labels_of_ours_that_are_gone_or_foreign_are_reported() -> None:
    changed = {"partition.gcluster.local/main": "false", "partition.gcluster.local/old": "true"}
    drift, _ = judged(printed(labels=changed)).drifts
    assert (drift.where, drift.kind) == ("gpu001", "label")
    assert (
        drift.now == "without partition.gcluster.local/main=true; with partition.gcluster.local/old"
    )


def test_what_was_deleted_changed_or_unlabelled_is_put_back_and_the_plan_reports_it() -> None:
    changed = {"partition.gcluster.local/main": "false"}
    found = judged(printed(labels=changed, writers=[OURS, PATCHED]))
    again = judged(printed(without=[QUOTA]))
    assert all(drift.fixable and not drift.steps for drift in (*found.drifts, *again.drifts))
    plan = restored_objects(found.drifts)
    assert plan is not None
    assert plan.changes == ("label gpu001", "label gpu002", "apply ResourceQuota: physics/gpus")
    assert restored_objects(again.drifts) == msgspec.structs.replace(plan, changes=plan.changes[2:])
    assert restored_objects(judged(printed({"gpu001": GONE})).drifts) is None


def test_of_three_control_planes_the_first_whole_answer_counts() -> None:
    assert judged("", printed().split("\x1d")[0], printed()) == SchedulerFindings()


@pytest.mark.parametrize("text", ["", "gpu001\x1fTrue", "gpu001\x1fTrue\x1e\x1dv1\x1f"])
def test_a_silent_api_server_is_not_known_to_be_well(text: str) -> None:
    assert judged(text).problem == "no API server answers"


def test_the_lines_run_in_a_shell_and_query_twice(tmp_path: Path) -> None:
    """Nodes, then objects with the cluster's label; the end of each is marked."""
    double = tmp_path / "kubectl"
    double.write_text('#!/bin/sh\necho "$@" >>"${0%/*}/asked"\nprintf x\n')
    double.chmod(0o755)
    spec = spec_of()
    words = scheduler_drift(spec, hosts_of(spec), load_catalog()).words
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", words], env=path, capture_output=True, text=True, check=True)
    assert done.stdout == "x\x1dx\x1d\n"
    nodes, objects = (tmp_path / "asked").read_text().splitlines()
    assert " get nodes --output=jsonpath={range .items[*]}" in nodes
    assert "--selector=gcluster.local/cluster=trial," in objects
    double.write_text("#!/bin/sh\nexit 1\n")
    failed = subprocess.run(["sh", "-c", words], env=path, capture_output=True, check=False)
    assert failed.stdout == b""


def test_a_cluster_of_slurm_is_queried_about_slurm() -> None:
    spec = spec_of(f"{TEXT.partition('scheduler:')[0]}scheduler: {{type: slurm}}\n")
    assert isinstance(scheduler_drift(spec, hosts_of(spec), load_catalog()), SlurmDrift)
