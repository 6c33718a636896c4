"""NVLink between nodes: jobs on NVL72 have what NVIDIA's own manifests have, and accounts no more.

The manifests, CRD and chart are those of NVIDIA's DRA driver in the catalog's release, out of its
Go module (demo/specs/imex, deployments/helm). No machine with such an NVLink was tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from gcluster.inventory.compile.kubernetes_objects.addons import chosen_addons
from gcluster.inventory.compile.kubernetes_objects.devices.gpus import nvidia_values
from gcluster.inventory.compile.kubernetes_objects.devices.nvlink import ADDON
from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts
from gcluster.inventory.compile.kubernetes_objects.jobs.allreduce import mpijob_objects
from gcluster.inventory.compile.kubernetes_objects.registration import awaited
from gcluster.lifecycle.smoke.launching.kubernetes import kubernetes_runs
from gcluster.schemas.catalog import load_catalog

from .compiled import facts_of, files_of, of_kind, spec_of
from .crds import module_folder
from .test_rules import refusals
from .test_templates import pods_of, templates_of

CASE = "racks"
MODULE = f"sigs.k8s.io/dra-driver-nvidia-gpu@v{load_catalog().addons[ADDON].version}"
CHART = "deployments/helm/dra-driver-nvidia-gpu"


@cache
def published(path: str) -> list[dict[str, Any]]:
    """Return the documents of a YAML file of NVIDIA's release."""
    text = (module_folder(MODULE) / path).read_text(encoding="utf-8")
    return [one for one in yaml.safe_load_all(text) if one]


def ours(kind: str, partition: str = "rack") -> dict[str, Any]:
    """Return the object of a kind in the templates' file of MPI jobs."""
    text = files_of(CASE)[f"templates/{partition}/mpijob.yaml"]
    (found,) = [one for one in yaml.safe_load_all(text) if one["kind"] == kind]
    return dict(found)


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return dotted path -> value of what a document says; lists by their index."""
    if isinstance(value, Mapping):
        items: list[tuple[str, Any]] = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list):
        items = [(str(index), one) for index, one in enumerate(value)]
    else:
        return {path: value}
    return {k: v for key, one in items for k, v in leaves(one, f"{path}.{key}".strip(".")).items()}


def test_a_compute_domain_differs_from_nvidias_in_names_and_the_deprecated_count() -> None:
    theirs, made = published("demo/specs/imex/nvbandwidth-test-job.yaml")[0], ours("ComputeDomain")
    differ = {
        path: (was, now)
        for path, was in leaves(theirs).items()
        if (now := leaves(made).get(path)) != was
    }
    assert differ == {
        "metadata.name": ("nvbandwidth-test-compute-domain", "train"),
        # 0: "recommended to be set to zero", says the CRD of the same release.
        "spec.numNodes": (4, 0),
        "spec.channel.resourceClaimTemplate.name": (
            "nvbandwidth-test-compute-domain-channel",
            "train-channel",
        ),
    }
    assert leaves(made).keys() - leaves(theirs).keys() == {"metadata.namespace"}


def test_workers_claim_the_channel_as_nvidias_do_and_the_launcher_claims_none() -> None:
    theirs = published("demo/specs/imex/nvbandwidth-test-job.yaml")[1]["spec"]["mpiReplicaSpecs"]
    made = ours("MPIJob")["spec"]["mpiReplicaSpecs"]
    worker, their_worker = (one["Worker"]["template"]["spec"] for one in (made, theirs))
    (claim,), (their_claim,) = worker["resourceClaims"], their_worker["resourceClaims"]
    assert claim.keys() == their_claim.keys()
    assert claim["resourceClaimTemplateName"] == "train-channel"
    for spec, named in ((worker, claim), (their_worker, their_claim)):
        assert spec["containers"][0]["resources"]["claims"] == [{"name": named["name"]}]
        assert "nvidia.com/gpu" in spec["containers"][0]["resources"]["limits"]
    for one in (made, theirs):
        launcher = one["Launcher"]["template"]["spec"]
        assert "resourceClaims" not in launcher
        assert "claims" not in launcher["containers"][0].get("resources", {})


def test_every_domain_fits_the_crd_of_the_release() -> None:
    (crd,) = published(f"{CHART}/crds/resource.nvidia.com_computedomains.yaml")
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    made = [one for _, one in templates_of(CASE) if one["kind"] == crd["spec"]["names"]["kind"]]
    made += of_kind(CASE, "ComputeDomain")
    assert len(made) > len(templates_of_kinds())
    for one in made:
        jsonschema.validate(one, schema)
        assert one["apiVersion"] == f"{crd['spec']['group']}/{version['name']}"
        assert one["spec"].keys() <= schema["properties"]["spec"]["properties"].keys()
        wrong = msgspec.to_builtins(one) | {"spec": {"numNodes": 0}}
        with pytest.raises(jsonschema.ValidationError, match="channel"):
            jsonschema.validate(wrong, schema)


def templates_of_kinds() -> set[str]:
    """Return the kinds of jobs in the templates of nodes with an NVLink domain."""
    kinds = {"Job", "JobSet", "MPIJob", "TrainJob"}
    return {made["kind"] for part, made in templates_of(CASE) if part == "rack"} & kinds


def test_every_kind_of_job_claims_a_channel_of_its_own_domain_on_racks_alone() -> None:
    assert templates_of_kinds() == {"Job", "JobSet", "MPIJob", "TrainJob"}
    for partition, made in templates_of(CASE):
        for pod in pods_of(made)[-1:]:
            name = made["metadata"]["name"]
            claims = pod["spec"].get("resourceClaims", [])
            template = [one["resourceClaimTemplateName"] for one in claims]
            assert template == ([f"{name}-channel"] if partition == "rack" else [])
    domains = [made for part, made in templates_of(CASE) if made["kind"] == "ComputeDomain"]
    assert {one["metadata"]["name"] for one in domains} == {"train", "torchrun"}


def test_the_gate_tries_the_channel_and_its_launcher_takes_neither_gpu_nor_channel() -> None:
    (racks,) = [run for run in kubernetes_runs(facts_of(spec_of(CASE))) if "nvl" in run.pools]
    (domain,) = [one for one in mpijob_objects(racks) if one["kind"] == "ComputeDomain"]
    (job,) = [one for one in mpijob_objects(racks) if one["kind"] == "MPIJob"]
    replicas = job["spec"]["mpiReplicaSpecs"]
    (claim,) = replicas["Worker"]["template"]["spec"]["resourceClaims"]
    named = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    assert (domain["metadata"]["name"], claim["resourceClaimTemplateName"]) == (racks.name, named)
    assert "resourceClaims" not in replicas["Launcher"]["template"]["spec"]


def test_the_chart_has_every_value_that_it_is_given_and_leaves_gpus_to_the_device_plugin() -> None:
    (chart,) = published(f"{CHART}/values.yaml")
    given = yaml.safe_load(files_of(CASE)[f"addons/{ADDON}.values.yaml"])
    assert given["resources"] == {"gpus": {"enabled": False}, "computeDomains": {"enabled": True}}
    for key in ("nvidiaDriverRoot", "resources"):
        assert leaves(given[key], key).keys() <= leaves(chart[key], key).keys()
    assert given["kubeletPlugin"].keys() <= chart["kubeletPlugin"].keys()
    assert chart["kubeletPlugin"]["tolerations"][0] in given["kubeletPlugin"]["tolerations"]
    (about,) = published(f"{CHART}/Chart.yaml")
    addon = load_catalog().addons[ADDON]
    assert (about["name"], about["version"]) == (addon.chart, addon.version)
    (image,) = addon.images
    assert image == f"{chart['image']['repository']}:v{about['appVersion']}"


def test_nodes_take_no_job_before_the_driver_offers_channels_there() -> None:
    facts = facts_of(spec_of(CASE))
    assert awaited(facts, "nvl") == ["compute-domain.nvidia.com", "nvidia.com/gpu", "rdma/ib"]
    assert "compute-domain.nvidia.com" not in awaited(facts, "hgx")


def test_kueue_counts_a_channel_a_node() -> None:
    (cohort,) = [o for o in of_kind(CASE, "Cohort") if o["metadata"]["name"] == "cluster"]
    (group,) = cohort["spec"]["resourceGroups"]
    counted = {
        flavor["name"]: {one["name"]: one["nominalQuota"] for one in flavor["resources"]}
        for flavor in group["flavors"]
    }
    assert counted["nvl"]["nvidia.com/imex-channel"] == "36"
    assert counted["hgx"]["nvidia.com/imex-channel"] == "0"
    values = yaml.safe_load(files_of(CASE)["addons/kueue.values.yaml"])["managerConfig"]
    resources = yaml.safe_load(values["controllerManagerConfigYaml"])["resources"]
    (mapped,) = resources["deviceClassMappings"]
    theirs = f"{CHART}/templates/deviceclass-compute-domain-default-channel.yaml"
    (name,) = mapped["deviceClassNames"]
    assert f"\n  name: {name}\n" in (module_folder(MODULE) / theirs).read_text(encoding="utf-8")


def test_an_account_makes_domains_in_its_quota_and_claims_no_daemon() -> None:
    (role,) = [o for o in of_kind(CASE, "Role") if o["metadata"]["namespace"] == "nlp"]
    may = [r for r in role["rules"] if r["apiGroups"] == ["resource.nvidia.com"]]
    assert [rule["resources"] for rule in may] == [["computedomains"]]
    (quota,) = [o for o in of_kind(CASE, "ResourceQuota") if o["metadata"]["name"] == "gpus"]
    channels = "compute-domain-default-channel.nvidia.com.deviceclass.resource.k8s.io/devices"
    assert quota["spec"]["hard"] == {"requests.nvidia.com/gpu": "30", channels: "8"}  # 30 / 4 GPUs


def claim(name: str, *, alternative: bool = False) -> dict[str, Any]:
    """Return what a claim says that requests one device of a class."""
    wanted: dict[str, Any] = {"deviceClassName": name}
    request = {"firstAvailable": [wanted]} if alternative else {"exactly": wanted}
    return {"devices": {"requests": [{"name": "one", **request}]}}


@pytest.mark.parametrize("alternative", [False, True])
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_of_the_daemon_is_refused_and_one_of_a_channel_is_not(
    kind: str, *, alternative: bool
) -> None:
    def output(name: str) -> list[str]:
        asked = claim(name, alternative=alternative)
        spec = asked if kind == "ResourceClaim" else {"spec": asked}
        return refusals(CASE, "gcluster-channels", "nlp", {"spec": spec}, kind=kind)

    daemon = "compute-domain-daemon.nvidia.com"
    assert output("compute-domain-default-channel.nvidia.com") == []
    assert output(daemon) == [f"no claim of {daemon}: make a ComputeDomain and claim its channel"]


def with_gpus(**changes: Any) -> KubernetesFacts:
    """Return the racks' facts with other settings of GPUs."""
    spec = spec_of(CASE)
    gpu = msgspec.structs.replace(spec.scheduler.gpu, **changes)  # type: ignore[union-attr]
    scheduler = msgspec.structs.replace(spec.scheduler, gpu=gpu)  # type: ignore[type-var]
    return facts_of(msgspec.structs.replace(spec, scheduler=scheduler))


def test_with_claimed_gpus_the_operator_brings_the_driver_with_its_domains() -> None:
    facts = with_gpus(resource_claims=True)
    assert ADDON not in {one.addon.name for one in chosen_addons(facts)}
    values = nvidia_values(facts)
    assert values["draDriver"] == {"computeDomains": {"enabled": True}}
    assert (values["gpuCluster"], values["clusterPolicy"]) == (
        {"deployCR": True},
        {"deployCR": False},
    )


def test_slices_of_gpus_get_no_channel() -> None:
    facts = with_gpus(mig="all-1g.23gb")
    assert ADDON not in {one.addon.name for one in chosen_addons(facts)}
