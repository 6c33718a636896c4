"""Workloads as TrainJobs: Kubeflow Trainer's CRDs, its webhooks' rules and the cluster's own."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.inventory.kubernetes_objects.compiled import CASES, of_kind
from tests.inventory.kubernetes_objects.crds import MODULES, crds, module_folder
from tests.inventory.kubernetes_objects.test_rules import refusals
from tests.inventory.workloads.test_kubernetes import WORKLOADS, compiled

from gcluster.inventory.workloads.kubernetes import pod_templates

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """The workloads of a cluster with InfiniBand, Kueue and the trainer, as TrainJobs."""
    text = (CASES / "specs" / "campus.yaml").read_text(encoding="utf-8")
    text = text.replace("addons: [jobset]", "addons: [kubeflow-trainer]")
    given = WORKLOADS.replace("ACCOUNT", "nlp").replace("FOLDER", "/lustre")
    return compiled(text + given.replace("account: nlp", "account: nlp, kind: TrainJob").replace(
        "account: nlp, kind: TrainJob\n", "account: nlp\n    kind: TrainJob\n"
    ))  # fmt: skip


@pytest.fixture(scope="module")
def schemas() -> dict[str, Draft202012Validator]:
    """Kind -> schema of Kubeflow Trainer's published CRD, in which no other key may be."""
    found = {}
    for crd in crds("trainer.kubeflow.org"):
        (version,) = crd["spec"]["versions"]
        schema = closed(version["schema"]["openAPIV3Schema"])
        found[crd["spec"]["names"]["kind"]] = Draft202012Validator(schema)
    return found


def closed(schema: Any) -> Any:
    """Return a schema that refuses what it doesn't name, but for metadata."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items() if key != "pattern"}
    if isinstance(found.get("properties"), dict):
        found["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        found.pop("anyOf", None)
    return found


def test_they_fit_the_published_crds(
    made: dict[str, Any], schemas: dict[str, Draft202012Validator]
) -> None:
    mistakes = []
    for objects in made.values():
        assert [one["kind"] for one in objects[-2:]] == ["TrainingRuntime", "TrainJob"]
        for one in objects[-2:]:
            errors = schemas[one["kind"]].iter_errors(one)
            mistakes += [f"{error.json_path}: {error.message[:200]}" for error in errors]
    assert mistakes == []


def test_a_runtime_has_what_the_webhook_and_the_published_one_have(made: dict[str, Any]) -> None:
    folder = module_folder(MODULES["trainer.kubeflow.org"][0])
    text = (folder / "manifests/base/runtimes/torch_distributed.yaml").read_text("utf-8")
    (theirs,) = yaml.safe_load(text)["spec"]["template"]["spec"]["replicatedJobs"]
    for objects in made.values():
        runtime, job = objects[-2:]
        (ours,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        assert ours["name"] == theirs["name"]
        assert ours["template"]["metadata"] == theirs["template"]["metadata"]
        assert ours["replicas"] == 1
        (container,) = pod_templates(objects)[0]["spec"]["containers"]
        (published,) = theirs["template"]["spec"]["template"]["spec"]["containers"]
        assert container["name"] == published["name"]
        assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
        assert job["metadata"]["namespace"] == runtime["metadata"]["namespace"]


def test_the_first_pod_is_found_where_the_trainer_makes_it(made: dict[str, Any]) -> None:
    runtime, job = made["letters"][-2:]
    (container,) = pod_templates(made["letters"])[0]["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    # JOB-node-0-0.JOB: pkg/runtime/framework/plugins/torch/torch.go, PET_MASTER_ADDR
    assert variables["MASTER_ADDR"] == "letters-node-0-0.letters"
    assert not [name for name in variables if name.startswith("PET_")]
    assert job["spec"]["trainer"] == {"numNodes": 2}
    assert job["spec"]["activeDeadlineSeconds"] == 7200
    jobs = runtime["spec"]["template"]["spec"]
    assert jobs["failurePolicy"] == {"maxRestarts": 3}
    assert jobs["network"]["subdomain"] == "letters"
    torch = made["ddp"][-1]["spec"]["trainer"]
    assert torch == {"numNodes": 2, "numProcPerNode": 8}
    assert made["ddp"][-2]["spec"]["mlPolicy"] == {"numNodes": 2, "torch": {}}
    script = pod_templates(made["ddp"])[0]["spec"]["containers"][0]["command"][2]
    for option in ("--nnodes=2", "--nproc-per-node=8", "--node-rank=", "--master-addr="):
        assert option in script, "over the PET_ variables that the trainer sets"
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_every_rule_of_the_cluster_takes_them(made: dict[str, Any]) -> None:
    policies = [one["metadata"]["name"] for one in of_kind("campus", "ValidatingAdmissionPolicy")]
    output: list[str] = []
    for objects in made.values():
        for policy in {"gcluster-queues", "gcluster-job-limits"}.intersection(policies):
            output += refusals("campus", policy, "nlp", objects[-1], kind="TrainJob")
        of_pods = {name for name in policies if name.endswith("-pods")}
        for policy in of_pods | {"gcluster-qos", "gcluster-partitions"}.intersection(policies):
            output += refusals("campus", policy, "nlp", pod_templates(objects)[0], kind="Pod")
        assert objects[-1]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "train"
    assert output == []
