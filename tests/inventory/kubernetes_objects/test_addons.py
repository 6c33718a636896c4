"""Add-ons' values and descriptions: what their charts and Flux take."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from gcluster.inventory.compile.kubernetes_objects.addons import (
    ORDER,
    calico_values,
    chosen_addons,
    cilium_values,
    flux_objects,
)
from gcluster.inventory.compile.kubernetes_objects.admission.rules import rules
from gcluster.inventory.compile.kubernetes_objects.devices.fabric import network_objects
from gcluster.inventory.compile.kubernetes_objects.devices.gpus import nvidia_values
from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts, tolerations
from gcluster.inventory.compile.kubernetes_objects.queues import (
    configuration,
    flavors,
    preferred_levels,
)
from gcluster.inventory.compile.kubernetes_objects.tree import queues
from gcluster.inventory.compile.kubernetes_objects.volumes import storage_classes
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import Software

from .compiled import facts_of, files_of, of_kind, spec_of


def with_gpu(case: str, **answer: object) -> KubernetesFacts:
    """Return a case's facts with GPUs handed out in another way."""
    facts = facts_of(spec_of(case))
    gpu = msgspec.structs.replace(facts.scheduler.gpu, **answer)
    scheduler = msgspec.structs.replace(facts.scheduler, gpu=gpu)
    return msgspec.structs.replace(facts, scheduler=scheduler)


def of_release(case: str, release: str) -> KubernetesFacts:
    """Return a case's facts under another release of Kubernetes."""
    spec = spec_of(case)
    software: Software = msgspec.structs.replace(spec.software, kubernetes=release)
    return facts_of(msgspec.structs.replace(spec, software=software))


def test_calicos_kinds_are_there_before_its_operator() -> None:
    operator = load_catalog().addons["tigera-operator"]
    assert operator.after == ["calico-crds"]
    releases = {one["metadata"]["name"]: one["spec"] for one in of_kind("cloud", "HelmRelease")}
    after = [one["name"] for one in releases["tigera-operator"]["dependsOn"]]
    assert after == ["calico-crds"]


def test_pod_networks_of_machines_need_no_route_to_another_rack_and_no_other_rules() -> None:
    facts = facts_of(spec_of("campus"))
    cilium = cilium_values(facts)
    assert cilium["routingMode"] == "tunnel"
    assert "autoDirectNodeRoutes" not in cilium
    network = calico_values(facts)["installation"]["calicoNetwork"]
    assert network["linuxDataplane"] == "Nftables"
    assert network["ipPools"][0]["encapsulation"] == "VXLANCrossSubnet"


def test_what_comes_after_an_add_on_is_after_it_in_the_order() -> None:
    for addon in load_catalog().addons.values():
        for first in addon.after:
            assert ORDER.index(first) < ORDER.index(addon.name)


@pytest.mark.parametrize("digest", [None, f"sha256:{'1' * 64}"])
def test_flux_takes_a_chart_from_a_registry_by_its_version_and_its_own_layer(
    digest: str | None,
) -> None:
    chosen = next(c for c in chosen_addons(facts_of(spec_of("campus"))) if c.addon.name == "kueue")
    addon = msgspec.structs.replace(chosen.addon, digest=digest)
    source, _ = flux_objects(msgspec.structs.replace(chosen, addon=addon), [])
    # The digest that the catalog has is the archive's, and Flux' is that of the artefact around it.
    assert source["spec"]["ref"] == {"tag": addon.version}
    assert source["spec"]["layerSelector"]["mediaType"].endswith("chart.content.v1.tar+gzip")


@pytest.mark.parametrize(("release", "off"), [("1.33", True), ("1.34", False), ("1.36", False)])
def test_kueue_does_without_claims_where_nothing_serves_them(release: str, *, off: bool) -> None:
    gates: dict[str, bool] = configuration(of_release("campus", release)).get("featureGates", {})
    assert (gates.get("KueueDRAIntegration") is False) == off


def test_a_job_runs_whole_or_gives_back_what_it_holds() -> None:
    ready = configuration(facts_of(spec_of("campus")))["waitForPodsReady"]
    assert ready["timeout"] == "30m"
    assert ready["blockAdmission"] is False
    classes = {one["metadata"]["name"]: one for one in of_kind("campus", "PriorityClass")}
    assert classes["high"]["preemptionPolicy"] == "Never"  # Kueue alone preempts
    without = {one["metadata"]["name"]: one for one in of_kind("local", "PriorityClass")}
    assert {one["preemptionPolicy"] for one in without.values()} >= {"Never"}


def test_jobs_of_several_pods_prefer_one_leaf_where_all_pools_of_their_partition_have_leaves() -> (
    None
):
    assert preferred_levels(facts_of(spec_of("campus"))) == {"train": "gcluster.local/leaf"}
    policies = rules(of_release("campus", "1.36"))
    (made,) = [
        one
        for one in policies
        if (one["kind"], one["metadata"]["name"])
        == ("MutatingAdmissionPolicy", "gcluster-topology")
    ]
    (mutation,) = made["spec"]["mutations"]
    expression = mutation["applyConfiguration"]["expression"]
    assert "podset-preferred-topology" in expression
    assert '"train": "gcluster.local/leaf"' in expression.replace("'", '"')


FLEX = """\
apiVersion: gcluster/v1
name: west
sites: {west: {provider: gcp, project: acme, region: us-central1, zone: us-central1-a}}
pools:
  flex: {site: west, machine: a3-megagpu-8g, count: {min: 0, max: 8}, market: [flex-start]}
  spot: {site: west, machine: a3-megagpu-8g, count: {min: 0, max: 4}, market: [spot]}
scheduler: {type: kubernetes, control_plane: gke, accounts: {nlp: {users: [ada]}}}
users: [{name: ada, uid: 2001}]
smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}
"""


def test_a_job_waits_until_gke_has_all_of_its_flex_start_nodes() -> None:
    """GKE, "flex-start with queued provisioning"; Kueue, admission checks (read 2026-11)."""
    loaded = load_text(FLEX)
    assert loaded.spec is not None, loaded.diagnostics
    made = queues(facts_of(loaded.spec))
    config, check = made["provisioning"]
    assert config["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"
    assert config["spec"]["managedResources"] == ["nvidia.com/gpu"]
    assert check["spec"]["parameters"]["name"] == config["metadata"]["name"]
    (queue,) = made["cluster-queues"]
    assert queue["spec"]["admissionChecksStrategy"] == {
        "admissionChecks": [{"name": check["metadata"]["name"], "onFlavors": ["flex"]}]
    }
    scheduler = msgspec.structs.replace(facts_of(loaded.spec).scheduler, kueue=False)
    alone = msgspec.structs.replace(loaded.spec, scheduler=scheduler)
    assert queues(facts_of(alone)) == {}
    assert queues(facts_of(spec_of("campus"))).get("provisioning") == []


AKS = """\
apiVersion: gcluster/v1
name: north
sites:
  north: {provider: azure, subscription: 00000000-0000-0000-0000-000000000000, region: eastus}
pools: {gpu: {site: north, machine: Standard_ND96isr_H100_v5, count: 2, market: [MARKET]}}
scheduler: {type: kubernetes, control_plane: aks, gpu: {driver: container}}
smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}
"""


@pytest.mark.parametrize("market", ["spot", "{spot_max_usd_per_hour: 30}"])
def test_what_aks_taints_spot_nodes_with_is_tolerated_by_what_is_to_run_there(market: str) -> None:
    spec = load_text(AKS.replace("MARKET", market)).spec
    assert spec is not None
    facts = facts_of(spec)
    spot = [{
        "key": "kubernetes.azure.com/scalesetpriority",
        "operator": "Equal",
        "value": "spot",
        "effect": "NoSchedule",
    }]  # fmt: skip
    (flavor,) = [one for one in flavors(facts) if one["kind"] == "ResourceFlavor"]
    assert flavor["spec"]["tolerations"] == spot
    assert nvidia_values(facts)["daemonsets"]["tolerations"][1:] == spot
    (policy,) = [one for one in network_objects(facts) if one["kind"] == "NicClusterPolicy"]
    assert policy["spec"]["tolerations"] == spot
    bought = load_text(AKS.replace("MARKET", "on-demand")).spec
    assert bought is not None
    assert tolerations(facts_of(bought), ["gpu"]) == []


@pytest.mark.parametrize(
    ("case", "default"), [("campus", ["home"]), ("local", ["local-path"]), ("google", [])]
)
def test_a_claim_that_names_no_class_gets_one_that_nodes_share_or_the_only_one(
    case: str, default: list[str]
) -> None:
    classes = storage_classes(facts_of(spec_of(case)))
    note = "storageclass.kubernetes.io/is-default-class"
    found = [
        one["metadata"]["name"] for one in classes if note in one["metadata"].get("annotations", {})
    ]
    assert found == default, [one["metadata"]["name"] for one in classes]


def test_claimed_gpus_are_queued_without_a_topology() -> None:
    assert of_kind("amd", "Topology") == []
    assert all("topologyName" not in one["spec"] for one in of_kind("amd", "ResourceFlavor"))
    assert of_kind("campus", "Topology")


@pytest.mark.parametrize("driver", ["host", "container"])
def test_a_driver_with_claims_is_a_separate_resource(driver: str) -> None:
    values: dict[str, Any] = nvidia_values(with_gpu("campus", driver=driver, resource_claims=True))
    assert values["gpuCluster"] == {"deployCR": True}
    assert ("nvidiaDriverCRD" in values["driver"]) == (driver == "container")


def test_a_new_lustre_of_azure_is_in_the_zone_of_its_site() -> None:
    (made,) = [
        one for one in of_kind("amd", "StorageClass") if one["metadata"]["name"] == "warm-new"
    ]
    assert made["parameters"]["zone"] == "1"


def test_google_makes_no_new_lustre_where_the_network_has_no_name_yet() -> None:
    assert "warm-new" not in [one["metadata"]["name"] for one in of_kind("google", "StorageClass")]
    spec = spec_of("google")
    network = msgspec.structs.replace(spec.sites["west"].network, vpc="research", subnet="gpus")
    site = msgspec.structs.replace(spec.sites["west"], network=network)
    facts = facts_of(msgspec.structs.replace(spec, sites={"west": site}))
    (made,) = storage_classes(facts)
    assert made["parameters"] == {"perUnitStorageThroughput": "500", "network": "research"}


def test_a_bucket_of_google_is_one_volume_for_each_storage_and_account() -> None:
    (made,) = (one for one in of_kind("google", "PersistentVolume") if "csi" in one["spec"])
    assert made["spec"]["csi"]["volumeHandle"] == "datasets:sets-nlp"
    assert made["spec"]["mountOptions"] == ["implicit-dirs", "only-dir=train"]


def test_add_ons_that_are_no_charts_are_there_for_flux_and_argo_too() -> None:
    made = yaml.safe_load(files_of("google")["addons/manifests/kustomization.yaml"])
    known = load_catalog().addons
    names = ("gke-device-injector", "gke-tcpxo-installer")
    assert made["resources"] == [known[name].repository for name in names]
    assert "addons/manifests/kustomization.yaml" not in files_of("campus")


def test_an_add_on_that_is_a_manifest_is_a_file_of_objects() -> None:
    for addon in load_catalog().addons.values():
        name = addon.repository.rpartition("/")[2]
        is_objects = name.endswith((".yaml", ".yml")) and name != "kustomization.yaml"
        assert addon.kind == "helm" or is_objects, addon.name


def test_the_problem_detector_reads_logs_of_nodes_with_containerd_and_restarts_nothing() -> None:
    """deliveryhero/helm-charts at 17aac33, stable/node-problem-detector/values.yaml."""
    facts = facts_of(spec_of("campus"))
    named = [*facts.scheduler.addons, "node-problem-detector"]
    scheduler = msgspec.structs.replace(facts.scheduler, addons=named)
    spec = msgspec.structs.replace(facts.spec, scheduler=scheduler)
    (chosen,) = [
        one for one in chosen_addons(facts_of(spec)) if one.addon.name == "node-problem-detector"
    ]
    theirs = {
        "log_monitors": [
            "/config/kernel-monitor.json",
            "/config/docker-monitor.json",
            "/config/readonly-monitor.json",
        ],
        "custom_plugin_monitors": [],
        "prometheus_address": "0.0.0.0",  # noqa: S104  # the chart's
    }
    settings: Any = chosen.values["settings"]
    assert settings.keys() == theirs.keys()
    kept = [name for name in theirs["log_monitors"] if "docker" not in name]
    assert settings["log_monitors"] == kept
    monitors = [*settings["log_monitors"], *settings["custom_plugin_monitors"]]
    assert not [name for name in monitors if "health-checker" in name]
    assert (
        settings["prometheus_address"] == "127.0.0.1"
    )  # nothing scrapes it, so nothing reaches it
    # theirs: effect NoSchedule alone
    assert chosen.values["tolerations"] == [{"operator": "Exists"}]
    assert chosen.addon.privileged  # /dev/kmsg
    assert chosen.addon.name in ORDER
