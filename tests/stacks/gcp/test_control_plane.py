"""GKE runs the control plane of node pools that are ours; several of ours are behind a proxy."""

from __future__ import annotations

from pathlib import Path

import pytest
from gcp_cases import items, part, recorded, spec_from
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.gcp.session import Session
from gcluster.stacks.provider import SiteContext, SiteOutputs

from ..engine_double import Engines
from ..graph_comparison import agrees
from ..ledger_double import RecordingLedger

GKE = """\
apiVersion: gcluster/v1
name: demo
sites:
  here:
    provider: gcp
    project: acme
    region: us-central1
    zone: us-central1-a
    network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}
pools:
  train: {site: here, machine: a3-megagpu-8g, count: 2}
scheduler: {type: kubernetes, control_plane: gke}
smoke: {allreduce: {image: "registry.example.edu/allreduce:1.4"}}
software: {kubernetes: "1.34"}
"""
THREE = GKE.replace(", control_plane: gke", "").replace(
    "pools:\n", "pools:\n  head: {site: here, role: controller, count: 3}\n"
)
both = pytest.mark.parametrize("text", [GKE, THREE], ids=["gke", "self"])


def graph_of(text: str) -> Graph:
    return Graph(recorded(spec_from(text)))


@both
def test_all_is_labelled_in_a_component_and_a_preview_agrees(text: str) -> None:
    spec = spec_from(text)
    graph = recorded(spec)
    assert untagged(graph, {"gcluster-cluster": "demo", "gcluster-site": "here"}) == ()
    assert (orphans(graph), unregistered(graph)) == ((), ())
    assert agrees(graph, recorded(spec, preview=True))


def test_an_account_s_pods_are_the_service_account_that_the_spec_names() -> None:
    """GKE, "Authenticate to Google Cloud APIs from GKE workloads" (read 2026-11)."""
    email = "nlp@acme.iam.gserviceaccount.com"
    text = GKE.replace(
        "control_plane: gke",
        "control_plane: gke, accounts: {nlp: {users: [ada]}}, "
        f"identities: {{nlp: {{name: {email}}}}}",
    ) + "users: [{name: ada, uid: 2001}]\n"  # fmt: skip
    graph = graph_of(text)
    [made] = [m.inputs for m in graph.of_type("IAMMember") if "-pods-" in m.name]
    assert made["member"] == "serviceAccount:acme.svc.id.goog[nlp/default]"
    assert made["role"] == "roles/iam.workloadIdentityUser"
    assert made["serviceAccountId"] == f"projects/-/serviceAccounts/{email}"
    assert orphans(recorded(spec_from(text))) == ()
    assert not [m for m in graph_of(GKE).of_type("IAMMember") if "-pods-" in m.name]


def test_the_cluster_has_private_nodes_and_upgrades_with_the_spec() -> None:
    made = graph_of(GKE).only("Cluster").inputs
    assert made["minMasterVersion"] == "1.34"
    assert made["releaseChannel"] == {"channel": "UNSPECIFIED"}
    assert made["privateClusterConfig"] == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": False,
    }
    assert made["masterAuthorizedNetworksConfig"] == {"cidrBlocks": [{"cidrBlock": "192.0.2.0/24"}]}
    assert made["ipAllocationPolicy"] == {
        "clusterIpv4CidrBlock": "10.244.0.0/16",
        "servicesIpv4CidrBlock": "10.96.0.0/16",
    }
    assert made["removeDefaultNodePool"] is True
    patched = graph_of(GKE.replace('"1.34"', '"1.34.5"'))  # with another image of nodes
    assert patched.only("Cluster").inputs["minMasterVersion"] == "1.34.5"
    assert {p.inputs["version"] for p in patched.of_type("NodePool")} == {"1.34.5"}


def test_a_pool_has_its_gpus_its_fabric_and_its_size() -> None:
    graph = graph_of(GKE)
    assert graph.of_type("InstanceTemplate") == ()
    [pool] = [p for p in graph.of_type("NodePool") if "system" not in p.name]
    assert (pool.inputs["nodeCount"], pool.inputs["version"]) == (2, "1.34")
    assert pool.inputs["placementPolicy"] == {"type": "COMPACT"}
    node = part(pool, "nodeConfig")
    [gpu] = items(node["guestAccelerators"])
    assert (gpu["type"], gpu["count"]) == ("nvidia-h100-mega-80gb", 8)
    assert gpu["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "LATEST"}
    nics = items(part(pool, "networkConfig")["additionalNodeNetworkConfigs"])
    assert len(nics) == 8
    assert node["labels"] == {"gcluster.local/pool": "train"}


def test_the_stack_shows_which_networks_pods_get_interfaces_in_and_is_read_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lustre = "{type: lustre, mount: /fast, site: here, capacity: 18 TiB}"
    spec = spec_from(f"{GKE}storage: {{fast: {lustre}}}\n")
    told = recorded(spec).outputs["fabric-networks"]
    assert [len(nics) for nics in told.values()] == [8]
    names = [str(nic).split("/") for nic in told["train"]]
    assert all(len(parts) == 2 and all(parts) for parts in names)
    assert len({subnet for _, subnet in names}) == 8
    stacks = Engines()
    monkeypatch.setattr("gcluster.stacks.pulumi.engine.automation.Engine", stacks)
    context = SiteContext(
        spec=spec,
        site="here",
        cluster_id="0a1b2c3d",
        workdir=tmp_path,
        cache=tmp_path,
        ledger=RecordingLedger(),
        emit=lambda _: None,
        state=f"file://{tmp_path}/state",
        passphrase=lambda: "a secret",
    )
    session = Session(context, load_catalog())
    assert session.outputs() == SiteOutputs()
    stacks.outputs = {
        "fabric-networks": {"train": ["net-1/sub-1", "net-2/sub-2"]},
        "file-systems": {"fast": "10.90.0.2@tcp:/fast"},
    }
    stacks.calls.clear()
    assert session.outputs() == SiteOutputs(
        file_systems={"fast": "10.90.0.2@tcp:/fast"},
        fabric_networks={"train": ("net-1/sub-1", "net-2/sub-2")},
    )
    assert stacks.calls == ["outputs"]


def test_an_elastic_pool_is_gke_s_autoscaler_s_to_size() -> None:
    marks = "kubernetes: {taints: [{key: example.edu/x}], labels: {example.edu/team: nlp}}"
    text = GKE.replace("count: 2}", f"count: {{min: 1, max: 6}}, {marks}}}")
    graph = graph_of(text)
    assert graph.of_type("InstanceTemplate") == ()
    [pool] = [p for p in graph.of_type("NodePool") if "system" not in p.name]
    assert pool.inputs["autoscaling"] == {
        "totalMinNodeCount": 1,
        "totalMaxNodeCount": 6,
        "locationPolicy": "ANY",
    }
    assert "nodeCount" not in pool.inputs
    assert pool.inputs["initialNodeCount"] == 1
    node = part(pool, "nodeConfig")
    assert node["labels"] == {
        "gcluster.local/pool": "train",
        "example.edu/team": "nlp",
        "partition.gcluster.local/main": "true",
    }
    assert node["taints"] == [{"key": "example.edu/x", "value": "", "effect": "NO_SCHEDULE"}]


def test_flex_start_is_queued_for_from_nothing_and_not_repaired() -> None:
    """cloud.google.com/kubernetes-engine/docs/concepts/dws: no node auto-repair, autoscaling."""
    text = GKE.replace("count: 2}", "count: {min: 0, max: 4}, market: [flex-start]}")
    [pool] = [p for p in graph_of(text).of_type("NodePool") if "system" not in p.name]
    assert pool.inputs["management"] == {"autoRepair": False, "autoUpgrade": False}
    assert part(pool, "autoscaling")["totalMaxNodeCount"] == 4
    assert part(pool, "nodeConfig")["flexStart"] is True
    assert pool.inputs["initialNodeCount"] == 0
    assert part(pool, "queuedProvisioning") == {"enabled": True}
    alone = text.replace("control_plane: gke", "control_plane: gke, kueue: false")
    [pool] = [p for p in graph_of(alone).of_type("NodePool") if "system" not in p.name]
    assert "queuedProvisioning" not in pool.inputs


def test_gke_s_name_is_known_of_every_machine_s_gpus() -> None:
    with_gpus = [m for m in load_catalog().machines.values() if m.gpu and "gcp" in m.sites]
    assert len(with_gpus) > 10
    assert [m.name for m in with_gpus if m.gpu and not m.gpu.gke_accelerator] == []


def test_where_the_operator_brings_the_driver_gke_brings_neither_it_nor_a_plugin() -> None:
    text = GKE.replace("control_plane: gke", "control_plane: gke, gpu: {driver: container}")
    [pool] = [p for p in graph_of(text).of_type("NodePool") if "system" not in p.name]
    node = part(pool, "nodeConfig")
    [gpu] = items(node["guestAccelerators"])
    assert gpu["gpuDriverInstallationConfig"] == {"gpuDriverVersion": "INSTALLATION_DISABLED"}
    assert node["imageType"] == "UBUNTU_CONTAINERD"
    assert "gke-no-default-nvidia-gpu-device-plugin" in str(node["labels"])


@pytest.mark.parametrize(
    ("message", "key", "value"),
    [
        ("mig: all-1g.10gb", "gpuPartitionSize", "1g.10gb"),
        ("time_slices: 4", "gpuSharingConfig",
         {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}),
    ],
)  # fmt: skip
def test_gke_s_own_plugin_cuts_and_shares_gpus(message: str, key: str, value: object) -> None:
    text = GKE.replace("control_plane: gke", f"control_plane: gke, gpu: {{{message}}}")
    [pool] = [p for p in graph_of(text).of_type("NodePool") if "system" not in p.name]
    [gpu] = items(part(pool, "nodeConfig")["guestAccelerators"])
    assert gpu[key] == value


def test_spot_and_reserved_nodes_are_pools_of_their_own() -> None:
    text = GKE.replace("count: 2", "count: 2, market: [{reservation: r-1}]")
    [pool] = [p for p in graph_of(text).of_type("NodePool") if "system" not in p.name]
    assert part(pool, "nodeConfig")["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["r-1"],
    }
    spot = GKE.replace("count: 2", "count: 2, market: [spot]")
    [pool] = [p for p in graph_of(spot).of_type("NodePool") if "system" not in p.name]
    assert part(pool, "nodeConfig")["spot"] is True


def test_several_api_servers_are_behind_an_internal_proxy() -> None:
    graph = graph_of(THREE)
    rule = graph.only("ForwardingRule").inputs
    assert (rule["loadBalancingScheme"], rule["portRange"]) == ("INTERNAL_MANAGED", "6443")
    assert len(graph.only("InstanceGroup").inputs["instances"]) == 3
    doors = [f.inputs for f in graph.of_type("Firewall") if f.name == "demo-here-api"]
    assert [door["sourceRanges"] for door in doors] == [
        ["100.127.254.0/23", "35.191.0.0/16", "130.211.0.0/22"]
    ]
    assert doors[0]["targetTags"] == ["demo-here-api"]
    [template] = [t for t in graph.of_type("InstanceTemplate") if "-head-" in t.name]
    assert "demo-here-api" in template.inputs["tags"]
    names = {r.inputs["name"] for r in graph.of_type("RecordSet")}
    assert "api.here.demo.internal." in names


def test_in_a_network_that_exists_its_owner_lets_the_proxies_in() -> None:
    there = "{vpc: projects/acme/global/networks/n, subnet: projects/acme/regions/us-central1/subnetworks/s}"  # noqa: E501  # one id
    text = THREE.replace("{cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}", there)
    graph = graph_of(text)
    assert graph.of_type("ForwardingRule")
    assert not [f for f in graph.of_type("Firewall") if f.name == "demo-here-api"]


def test_pods_data_is_on_as_many_local_ssds_as_in_google_s_own_recipes() -> None:
    """32 of a3-ultragpu-8g, 16 of a3-megagpu-8g: `--ephemeral-storage-local-ssd=count=` there."""
    text = GKE + "storage: {scratch: {type: local-nvme, mount: /scratch, format: true}}\n"
    ultra = text.replace("us-central1-a", "us-central1-b").replace("a3-mega", "a3-ultra")
    found = []
    for given in (text, ultra, GKE):
        [pool] = [p for p in graph_of(given).of_type("NodePool") if "system" not in p.name]
        found.append(part(pool, "nodeConfig").get("ephemeralStorageLocalSsdConfig"))
    assert found == [{"localSsdCount": 16}, {"localSsdCount": 32}, None]


WINDOW = "{patches: {start: '2027-01-15T06:00Z', duration: 12h, every: week}}"


def test_nodes_are_renewed_in_their_places_as_many_at_once_as_the_pool_allows() -> None:
    """Placed close together there are no others; docs.cloud.google.com, surge settings."""
    many = GKE.replace("count: 2", "count: 30, update: {max_unavailable: 25}")
    given = []
    for text in (GKE, many):
        [pool] = [p for p in graph_of(text).of_type("NodePool") if "system" not in p.name]
        given.append(pool.inputs["upgradeSettings"])
    assert given == [
        {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1},
        {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 20},
    ]


@pytest.mark.parametrize(
    ("every", "recurrence"), [("week", "FREQ=WEEKLY;BYDAY=FR"), ("day", "FREQ=DAILY")]
)
def test_gke_renews_what_it_runs_in_the_window_of_the_spec(every: str, recurrence: str) -> None:
    window = WINDOW.replace("week", every)
    text = GKE.replace("control_plane: gke", f"control_plane: gke, maintenance: {window}")
    made = graph_of(text).only("Cluster").inputs
    assert made["maintenancePolicy"] == {
        "recurringWindow": {
            "startTime": "2027-01-15T06:00:00Z",
            "endTime": "2027-01-15T18:00:00Z",
            "recurrence": recurrence,
        }
    }
    assert "maintenancePolicy" not in graph_of(GKE).only("Cluster").inputs
