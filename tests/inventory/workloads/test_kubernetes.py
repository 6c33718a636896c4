"""Workloads as Jobs: Kubernetes' schemas, the cluster's own rules and bash take them."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from tests.inventory.kubernetes_objects.compiled import CASES, facts_of, of_kind
from tests.inventory.kubernetes_objects.strict import mistakes
from tests.inventory.kubernetes_objects.test_rules import refusals
from tests.inventory.kubernetes_objects.test_templates import pods_of
from tests.inventory.workloads.test_batch import TORCHRUN

from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts
from gcluster.inventory.workloads.checkpoints import WriteSpeed
from gcluster.inventory.workloads.kubernetes import workload_objects
from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.load import load_text

LOCAL = """
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 4}
storage:
  scratch: {type: nfs, mount: /scratch, server: head}
  home: {type: nfs, mount: /home, server: head}
scheduler: {type: kubernetes, kueue: false}
"""
WORKLOADS = """
workloads:
  letters:
    framework: command
    nodes: 2
    account: ACCOUNT
    image: registry.example.edu/train:1
    chdir: FOLDER/run
    command: [python3, "it's here.py"]
    variables: {STEPS: "200"}
    checkpoint: {to: scratch, every: auto, size: 1 GB, notice: 90s, path: own}
    restarts: 3
    time: 2h
  ddp:
    {framework: torchrun, nodes: 2, account: ACCOUNT, image: "a.example/b:1", script: FOLDER/t.py}
  parted: {framework: torchrun, gpus: 4, account: ACCOUNT, image: "a.example/b:1", script: t.py}
  shrinks:
    {framework: torchrun-elastic, nodes: 2, min_nodes: 1, account: ACCOUNT, image: "a.example/b:1",
     script: t.py}
"""
COMMAND = """
  ad-hoc:
    {framework: command, nodes: 2, account: ACCOUNT, image: "a.example/b:1", command: ["true"]}
"""
"""As `run --nodes 2 --account nlp --image a.example/b:1 -- true` makes it."""
OPTIONS = TORCHRUN | {"node-rank", "master-addr", "master-port"}
"""Options of torch/distributed/run.py, PyTorch 2.6."""


def compiled(text: str, measured: dict[str, WriteSpeed] | None = None) -> dict[str, Any]:
    """Return workload -> its objects."""
    loaded = load_text(text)
    assert loaded.spec is not None, [
        one.summary for one in loaded.diagnostics if one.severity is Severity.ERROR
    ]
    facts: KubernetesFacts = facts_of(loaded.spec)
    return {
        name: workload_objects(facts, name, workload, "#!/bin/sh\n", measured)
        for name, workload in loaded.spec.workloads.items()
    }


@pytest.fixture(scope="module")
def local() -> dict[str, Any]:
    """The workloads on local nodes, as Indexed Jobs."""
    accounts = LOCAL.replace("kueue: false", "kueue: false, accounts: {nlp: {}}")
    return compiled(accounts + WORKLOADS.replace("ACCOUNT", "nlp").replace("FOLDER", "/scratch"))


@pytest.fixture(scope="module")
def campus() -> dict[str, Any]:
    """The workloads where JobSet, Kueue and InfiniBand are, in an account of a tree."""
    text = (CASES / "specs" / "campus.yaml").read_text(encoding="utf-8")
    given = WORKLOADS + COMMAND
    return compiled(text + given.replace("ACCOUNT", "nlp").replace("FOLDER", "/lustre"))


def _container(made: dict[str, Any]) -> Any:
    return pods_of(made)[0]["spec"]["containers"][0]


def test_jobs_fit_kubernetes_own_schema(local: dict[str, Any]) -> None:
    found = [mistakes(made, "1.35") for objects in local.values() for made in objects]
    assert [wrong for wrong in found if wrong] == []


def test_every_rule_of_the_cluster_takes_them(campus: dict[str, Any]) -> None:
    policies = [one["metadata"]["name"] for one in of_kind("campus", "ValidatingAdmissionPolicy")]
    output: list[str] = []
    assert _container(campus["ad-hoc"][-1])["image"] == "a.example/b:1"
    for objects in campus.values():
        made = objects[-1]
        assert made["kind"] == "JobSet"
        for policy in {"gcluster-queues", "gcluster-job-limits"}.intersection(policies):
            output += refusals("campus", policy, "nlp", made, kind="JobSet")
        of_pods = {name for name in policies if name.endswith("-pods")}
        for policy in of_pods | {"gcluster-qos", "gcluster-partitions"}.intersection(policies):
            output += refusals("campus", policy, "nlp", pods_of(made)[0], kind="Pod")
    assert output == []


def test_bash_takes_each_script_and_torchrun_its_options(
    local: dict[str, Any], campus: dict[str, Any]
) -> None:
    for objects in (*local.values(), *campus.values()):
        shell, flag, script = _container(objects[-1])["command"]
        assert (shell, flag) == ("/bin/bash", "-c")
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        lines = [line.strip() for line in script.splitlines()]
        assert ("$near_gpu" in script) == ("export near_gpu" in script)
        if "exec torchrun \\" in lines:
            words = lines[lines.index("exec torchrun \\") + 1 :]
            given = [word[2:].rstrip(" \\") for word in words if word.startswith("--")]
            options = [word.partition("=")[0] for word in given]
            assert options
            assert set(options) <= OPTIONS


def test_a_training_has_its_storage_programs_time_to_save_and_other_nodes(
    local: dict[str, Any],
) -> None:
    service, programs, job = local["letters"]
    pod = job["spec"]["template"]["spec"]
    mounts = {one["name"]: one["mountPath"] for one in _container(job)["volumeMounts"]}
    assert mounts["scratch"] == "/scratch"
    assert "home" not in mounts
    claims = [v["persistentVolumeClaim"] for v in pod["volumes"] if "persistentVolumeClaim" in v]
    assert claims == [{"claimName": "scratch"}]
    assert list(programs["data"]) == ["job-checkpoint.py"]
    assert pod["terminationGracePeriodSeconds"] == 90
    assert job["spec"]["activeDeadlineSeconds"] == 7200
    assert job["spec"]["backoffLimit"] == 2 * 4 - 1
    variables = {one["name"]: one.get("value") for one in _container(job)["env"]}
    assert variables["GCLUSTER_CHECKPOINTS"] == "/scratch/own"
    assert variables["GCLUSTER_CHECKPOINT_EVERY"] == "1800"
    assert variables["MASTER_ADDR"] == f"letters-0.{service['metadata']['name']}"
    assert "exec python3 'it'\"'\"'s here.py'\n" in _container(job)["command"][2]
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"


def test_a_part_of_a_node_gets_that_many_gpus_and_a_job_set_its_restarts(
    local: dict[str, Any], campus: dict[str, Any]
) -> None:
    (_, part) = local["parted"]
    assert _container(part)["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert "affinity" not in part["spec"]["template"]["spec"]
    assert "--nproc-per-node=4" in _container(campus["parted"][-1])["command"][2]
    made = campus["letters"][-1]
    assert made["spec"]["failurePolicy"] == {"maxRestarts": 3}
    variables = {one["name"]: one.get("value") for one in _container(made)["env"]}
    assert variables["MASTER_ADDR"] == "letters-workers-0-0.letters"
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "train"


def test_measured_storage_decides_how_often_it_saves() -> None:
    speed = WriteSpeed(nodes=2, alone=1e9, together=1e9, time="2026-11-29T00:00:00Z")
    accounts = LOCAL.replace("kueue: false", "kueue: false, accounts: {nlp: {}}")
    text = accounts + WORKLOADS.replace("ACCOUNT", "nlp").replace("FOLDER", "/scratch")
    (_, _, job) = compiled(text, {"scratch": speed})["letters"]
    assert "(measured on 2 nodes, 2026-11-29T00:00:00Z)" in _container(job)["command"][2]


@pytest.mark.parametrize(("own", "expected"), [("", "1"), ("8", "8")])
def test_megatron_has_the_variable_that_it_requires_once(own: str, expected: str) -> None:
    text = f"""
workloads:
  gpt:
    framework: megatron
    nodes: 2
    image: registry.example.edu/train:1
    script: pretrain_gpt.py
    parallel: {{tensor: 2, global_batch: 8}}
    variables: {{{f'CUDA_DEVICE_MAX_CONNECTIONS: "{own}"' if own else ""}}}
"""
    env = _container(compiled(LOCAL + text)["gpt"][-1])["env"]
    found = [each["value"] for each in env if each["name"] == "CUDA_DEVICE_MAX_CONNECTIONS"]
    assert found == [expected]
