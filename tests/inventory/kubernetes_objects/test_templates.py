"""Templates of jobs: the API server's rules take them, and they have what their fabric needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gcluster.inventory.compile.kubernetes_objects.addons import chosen_addons
from gcluster.inventory.compile.kubernetes_objects.devices.fabric import fabric_access
from gcluster.inventory.compile.kubernetes_objects.jobs.templates import templates
from gcluster.inventory.compile.kubernetes_objects.queues import configuration
from gcluster.inventory.compile.kubernetes_objects.registration import nodes
from gcluster.inventory.compile.kubernetes_objects.volumes import storage_classes
from gcluster.schemas.load import load_text

from .compiled import NAMES, facts_of, files_of, of_kind, spec_of
from .strict import mistakes
from .test_rules import refusals


def templates_of(case: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (partition, object) for all templates of a case."""
    for name, text in files_of(case).items():
        if name.startswith("templates/"):
            for made in yaml.safe_load_all(text):
                yield name.split("/")[1], made


def pods_of(made: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the templates of a job's pods."""
    spec = made["spec"]
    if made["kind"] == "JobSet":
        return [one["template"]["spec"]["template"] for one in spec["replicatedJobs"]]
    if made["kind"] == "TrainingRuntime":
        jobs = spec["template"]["spec"]["replicatedJobs"]
        return [one["template"]["spec"]["template"] for one in jobs]
    if made["kind"] == "MPIJob":
        return [one["template"] for one in spec["mpiReplicaSpecs"].values()]
    return [spec["template"]] if made["kind"] == "Job" else []


@pytest.mark.parametrize("case", NAMES)
def test_every_rule_of_the_cluster_takes_every_template(case: str) -> None:
    policies = [one["metadata"]["name"] for one in of_kind(case, "ValidatingAdmissionPolicy")]
    output: list[str] = []
    for _, made in templates_of(case):
        account, kind = made["metadata"]["namespace"], made["kind"]
        if kind in {"JobSet", "MPIJob", "TrainJob", "Job"}:
            wholes = {"gcluster-queues", "gcluster-job-limits"}
            if kind == "Job":
                wholes |= {
                    "gcluster-confined-jobs",
                    "gcluster-restricted-jobs",
                    "gcluster-whole-jobs",
                }
            for policy in wholes.intersection(policies):
                output += refusals(case, policy, account, made, kind=kind)
        of_pods = {name for name in policies if name.endswith("-pods")}
        of_pods |= {"gcluster-qos", "gcluster-partitions"}.intersection(policies)
        for pod in pods_of(made):
            for policy in of_pods:
                output += refusals(case, policy, account, pod, kind="Pod")
    assert output == []


@pytest.mark.parametrize("case", NAMES)
def test_a_template_takes_whole_nodes_and_has_its_fabrics_settings(case: str) -> None:
    facts = facts_of(spec_of(case))
    for partition, made in templates_of(case):
        access = fabric_access(facts, facts.partitions[partition].pools[0])
        for pod in pods_of(made)[-1:]:
            (container,) = pod["spec"]["containers"]
            environment = {one["name"]: one["value"] for one in container["env"]}
            assert environment == {n.removesuffix("+"): v for n, v in access.environment.items()}
            limits = container["resources"]["limits"]
            assert access.resources.items() <= limits.items()
            assert pod["metadata"].get("annotations", {}) == access.annotations


@pytest.mark.parametrize("case", NAMES)
def test_templates_of_built_in_kinds_fit_the_schema(case: str) -> None:
    release = facts_of(spec_of(case)).release
    found = [mistakes(made, release) for _, made in templates_of(case) if made["kind"] == "Job"]
    assert [wrong for wrong in found if wrong] == []


def test_torchrun_has_its_rank_and_finds_the_first_pod() -> None:
    (job,) = [made for _, made in templates_of("cloud") if made["kind"] == "Job"]
    pod = job["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]
    assert command[:3] == ["torchrun", "--nnodes=2", "--nproc-per-node=56"]
    assert "--node-rank=$(JOB_COMPLETION_INDEX)" in command
    assert "--master-addr=torchrun-0.torchrun" in command
    assert (pod["subdomain"], job["spec"]["completionMode"]) == ("torchrun", "Indexed")
    (service,) = [made for _, made in templates_of("cloud") if made["kind"] == "Service"]
    assert service["spec"]["clusterIP"] == "None"
    assert pod["containers"][0]["resources"]["limits"]["vpc.amazonaws.com/efa"] == "32"


def test_a_train_job_s_runtime_has_the_fabric_and_the_trainer_finds_its_container() -> None:
    made = {one["kind"]: one for _, one in templates_of("roce")}
    runtime, job = made["TrainingRuntime"], made["TrainJob"]["spec"]
    assert job["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert (job["trainer"]["numNodes"], job["trainer"]["numProcPerNode"]) == (2, 8)
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    ours = node["template"]["metadata"]["labels"]
    assert ours == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    (pod,) = pods_of(runtime)
    (container,) = pod["spec"]["containers"]
    assert (node["name"], container["name"]) == ("node", "node")
    assert container["resources"]["limits"]["nvidia.com/gpu_rail_0"] == "1"
    assert made["TrainJob"]["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "main"}


def test_the_trainer_comes_after_job_set_and_kueue_queues_its_jobs() -> None:
    addons = [one.addon.name for one in chosen_addons(facts_of(spec_of("roce")))]
    assert addons.index("jobset") < addons.index("kubeflow-trainer") < addons.index("kueue")
    frameworks = configuration(facts_of(spec_of("roce")))["integrations"]["frameworks"]
    assert {"jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"} <= set(frameworks)


def test_jobs_of_other_kinds_are_there_where_their_add_ons_are() -> None:
    kinds = {made["kind"] for _, made in templates_of("campus")}
    named = set(spec_of("campus").scheduler.addons)  # type: ignore[union-attr]  # Kubernetes'
    assert ("JobSet" in kinds, "MPIJob" in kinds) == ("jobset" in named, "mpi-operator" in named)
    assert {made["kind"] for _, made in templates_of("cloud")} == {"Service", "Job"}


_DISKS = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {SITE}}
pools:
  train: {site: here, machine: MACHINE, count: 2}
  cpus: {site: here, machine: PLAIN, count: 2}
storage: {scratch: {type: local-nvme, mount: /scratch, format: true, pools: [train]}}
scheduler:
  type: kubernetes
  control_plane: PLANE
  gpu: {driver: DRIVER}
  partitions: {train: {pools: [train]}, cpus: {pools: [cpus]}}
smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}
"""
_AZURE = "provider: azure, subscription: 00000000-0000-0000-0000-000000000001, region: eastus"
_EKS = {
    "SITE": "provider: aws, region: us-east-1, zone_id: use1-az4",
    "MACHINE": "p5.48xlarge",
    "PLAIN": "m7i.xlarge",
    "PLANE": "eks",
    "DRIVER": "host",
}
_GKE = _EKS | {
    "SITE": "provider: gcp, project: acme, region: us-central1, zone: us-central1-a",
    "MACHINE": "a3-megagpu-8g",
    "PLAIN": "n2-standard-8",
    "PLANE": "gke",
}
_AKS = {
    "SITE": f"{_AZURE}, zone: '1'",
    "MACHINE": "Standard_ND96isr_H100_v5",
    "PLAIN": "Standard_D8s_v5",
    "PLANE": "aks",
    "DRIVER": "container",
}
"""As learn.microsoft.com/azure/storage/container-storage/use-container-storage-with-local-disk."""


@pytest.mark.parametrize(
    ("cloud", "source"),
    [
        (_EKS, {"emptyDir": {}}),
        (_GKE, {"emptyDir": {}}),
        (
            _AKS,
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "storageClassName": "scratch",
                            "resources": {"requests": {"storage": "25804Gi"}},
                        }
                    }
                }
            },
        ),
    ],
    ids=["eks", "gke", "aks"],
)
def test_a_job_finds_its_nodes_own_disks_where_the_spec_mounts_them(
    cloud: dict[str, str], source: dict[str, Any]
) -> None:
    text = _DISKS
    for word, value in cloud.items():
        text = text.replace(word, value)
    spec = load_text(text).spec
    assert spec is not None, load_text(text).diagnostics
    facts = facts_of(spec)
    made = templates(facts)
    pod = made["train"]["torchrun"][1]["spec"]["template"]["spec"]
    assert {"name": "disks", **source} in pod["volumes"]
    assert {"name": "disks", "mountPath": "/scratch"} in pod["containers"][0]["volumeMounts"]
    other = made["cpus"]["torchrun"][1]["spec"]["template"]["spec"]
    assert "disks" not in {one["name"] for one in other["volumes"]}
    assert mistakes(made["train"]["torchrun"][1], facts.release) == []
    classes = {one["provisioner"]: one for one in storage_classes(facts)}
    assert "rancher.io/local-path" not in classes
    if cloud is _AKS:
        own = classes["localdisk.csi.acstor.io"]
        assert (own["metadata"]["name"], own["volumeBindingMode"]) == (
            "scratch",
            "WaitForFirstConsumer",
        )
        where = own["metadata"]["annotations"]["storageoperator.acstor.io/nodeAffinity"]
        assert '"values": ["train"]' in where
    else:
        assert "localdisk.csi.acstor.io" not in classes


def test_a_pool_s_runtime_class_places_pods_on_nodes_that_have_it_and_its_jobs_name_it() -> None:
    [made] = of_kind("parts", "RuntimeClass")
    assert (made["metadata"]["name"], made["handler"]) == ("kata", "kata")
    wanted = made["scheduling"]["nodeSelector"]
    labels = {name: one["labels"] for name, one in nodes(facts_of(spec_of("parts"))).items()}
    assert [n for n, given in labels.items() if wanted.items() <= given.items()] == ["trial001"]
    found = {
        partition: pod["spec"].get("runtimeClassName")
        for partition, one in templates_of("parts")
        for pod in pods_of(one)
    }
    assert found == {"main": None, "trial": "kata"}


def test_where_gpus_are_claimed_a_templates_pod_claims_its_nodes_and_requests_none() -> None:
    claimed = {
        one["metadata"]["name"]: one["spec"]["spec"]["devices"]["requests"][0]["exactly"]
        for one in of_kind("amd", "ResourceClaimTemplate")
        if one["metadata"]["namespace"] == "nlp"
    }
    assert claimed["gpus-8"] == {"deviceClassName": "gpu.amd.com", "count": 8}
    found = [pod for _, made in templates_of("amd") for pod in pods_of(made)]
    assert found
    for pod in found:
        (container,) = pod["spec"]["containers"]
        (claim,) = pod["spec"]["resourceClaims"]
        assert claim["resourceClaimTemplateName"] == "gpus-8"
        assert container["resources"]["claims"] == [{"name": claim["name"]}]
        assert not any(name.startswith("amd.com/") for name in container["resources"]["limits"])
        assert "--nproc-per-node=8" in container["command"]


def test_a_job_whose_claims_never_fit_its_accounts_quota_is_refused_as_a_whole() -> None:
    def job(pods: int, *names: str) -> dict[str, Any]:
        claims = [{"name": f"c{n}", "resourceClaimTemplateName": t} for n, t in enumerate(names)]
        spec = {"containers": [{"name": "x"}], "resourceClaims": claims}
        return {"spec": {"parallelism": pods, "template": {"spec": spec}}}

    made = {one["metadata"]["name"] for one in of_kind("amd", "ResourceClaimTemplate")}
    assert {"gpu", "gpus-8"} <= made
    refused = "it asks for more than the quota of this account: 8 gpu.amd.com"
    for pods, names, answer in (
        (1, ("gpus-8",), []),
        (8, ("gpu",), []),
        (2, ("gpus-8",), [refused]),
        (1, ("gpus-8", "gpu"), [refused]),
        (9, ("gpu",), [refused]),
        (9, ("ones-own",), []),  # the ResourceQuota counts what these claim
    ):
        assert refusals("amd", "gcluster-whole-jobs", "nlp", job(pods, *names)) == answer
