"""AKS runs the control plane of our node pools; several of ours are behind a load balancer."""

from __future__ import annotations

import base64

import pytest
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.stacks.azure.plan.control_plane import pool_name
from gcluster.stacks.azure.program.control_plane import read_kubeconfig

from ..graph_comparison import agrees
from .recorded_cases import CASES, parsed, recorded

KUBERNETES = CASES / "kubernetes"
AKS = (KUBERNETES / "aks.yaml").read_text(encoding="utf-8")
THREE = (KUBERNETES / "three-controllers.yaml").read_text(encoding="utf-8")
both = pytest.mark.parametrize("text", [AKS, THREE], ids=["aks", "self"])


@both
def test_all_is_tagged_in_a_component_and_a_preview_agrees(text: str) -> None:
    spec = parsed(text)
    graph = recorded(spec)
    assert untagged(graph, {"gcluster-cluster": "demo", "gcluster-site": "here"}) == ()
    assert (orphans(graph), unregistered(graph)) == ((), ())
    assert agrees(graph, recorded(spec, preview=True))


def test_the_cluster_upgrades_with_the_spec_and_administrators_alone_reach_it() -> None:
    made = Graph(recorded(parsed(AKS))).only("ManagedCluster").inputs
    assert made["kubernetesVersion"] == "1.34"
    assert made["autoUpgradeProfile"]["upgradeChannel"] == "none"
    assert made["apiServerAccessProfile"] == {"authorizedIPRanges": ["192.0.2.0/24"]}
    network = made["networkProfile"]
    assert (network["podCidr"], network["dnsServiceIP"]) == ("10.244.0.0/16", "10.96.0.10")
    assert network["outboundType"] == "userAssignedNATGateway"
    patched = Graph(recorded(parsed(AKS.replace('"1.34"', '"1.34.5"'))))
    assert patched.only("ManagedCluster").inputs["kubernetesVersion"] == "1.34.5"
    closed = parsed(AKS.replace(", admin_cidrs: [192.0.2.0/24]", ""))
    made = Graph(recorded(closed)).only("ManagedCluster").inputs
    assert made["apiServerAccessProfile"]["enablePrivateCluster"] is True


def test_an_account_s_pods_are_the_managed_identity_that_the_spec_names() -> None:
    """learn.microsoft.com, "Use Microsoft Entra Workload ID with AKS" (read 2026-11)."""
    subscription = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/ids"
    identity = f"{subscription}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nlp"
    client = "00000000-0000-0000-0000-000000000002"
    text = AKS.replace(
        "control_plane: aks,",
        "control_plane: aks, accounts: {nlp: {users: [ada]}}, "
        f"identities: {{nlp: {{name: {identity}, client_id: {client}}}}},",
    ) + "users: [{name: ada, uid: 2001}]\n"  # fmt: skip
    graph = Graph(recorded(parsed(text)))
    made = graph.only("FederatedIdentityCredential").inputs
    assert (made["resourceGroupName"], made["resourceName"]) == ("ids", "nlp")
    assert made["subject"] == "system:serviceaccount:nlp:default"
    assert made["audiences"] == ["api://AzureADTokenExchange"]
    cluster = graph.only("ManagedCluster").inputs
    assert cluster["oidcIssuerProfile"] == {"enabled": True}
    assert cluster["securityProfile"] == {"workloadIdentity": {"enabled": True}}
    assert orphans(recorded(parsed(text))) == ()
    assert "securityProfile" not in Graph(recorded(parsed(AKS))).only("ManagedCluster").inputs


def test_an_elastic_pool_is_the_autoscaler_s_and_a_system_pool_is_one() -> None:
    more = "  tools: {site: here, machine: Standard_D8s_v5, count: 2, kubernetes: {system: true}}\n"
    grows = AKS.replace("count: 2", "count: {min: 1, max: 5}").replace(
        "pools:\n", f"pools:\n{more}"
    )
    assert grows.count("max: 5") == 1
    pools = {p.inputs["nodeLabels"]["gcluster.local/pool"]: p.inputs
             for p in Graph(recorded(parsed(grows))).of_type("AgentPool")}  # fmt: skip
    own = pools.pop("tools")
    assert (own["mode"], own.get("enableAutoScaling")) == ("System", None)
    [pool] = pools.values()
    assert pool["mode"] == "User"
    bounds = [pool[key] for key in ("enableAutoScaling", "minCount", "maxCount", "count")]
    assert bounds == [True, 1, 5, 1]
    assert pool["nodeLabels"]["partition.gcluster.local/main"] == "true"


def test_it_may_use_the_nodes_subnet_and_nothing_else() -> None:
    graph = Graph(recorded(parsed(AKS)))
    [given] = [r for r in graph.of_type("RoleAssignment") if r.name.endswith("aks-subnet")]
    assert given.inputs["scope"] == "${Subnet/demo-here-compute.id}"
    assert str(given.inputs["roleDefinitionId"]).endswith("4d97b98b-1d4f-4787-a291-c67834d212e7")


def test_those_who_makes_it_is_its_administrator_by_entra_and_by_nothing_else() -> None:
    graph = Graph(recorded(parsed(AKS)))
    made = graph.only("ManagedCluster").inputs
    assert made["disableLocalAccounts"] is True
    assert made["aadProfile"] == {"managed": True, "enableAzureRBAC": True}
    [given] = [r for r in graph.of_type("RoleAssignment") if r.name.endswith("aks-admin")]
    assert given.inputs["principalId"] == "${whoever is logged in}"
    assert given.inputs["scope"] == "${ManagedCluster/demo-here-aks.id}"
    assert str(given.inputs["roleDefinitionId"]).endswith("b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b")


def test_address_and_authority_are_read_out_of_the_kubeconfig_that_azure_gives() -> None:
    text = """apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1C
    server: https://demo-here-1.hcp.eastus.azmk8s.io:443
  name: demo-here-aks
"""
    answer = read_kubeconfig(base64.b64encode(text.encode()).decode())
    assert answer == ("https://demo-here-1.hcp.eastus.azmk8s.io:443", "LS0tLS1C")
    assert read_kubeconfig("") == ("", "")


def test_a_pool_is_a_node_pool_of_its_size_whose_driver_the_operator_brings() -> None:
    graph = Graph(recorded(parsed(AKS)))
    assert graph.of_type("VirtualMachineScaleSet") == ()
    pool = graph.only("AgentPool").inputs
    assert (pool["count"], pool["mode"], pool["orchestratorVersion"]) == (2, "User", "1.34")
    assert pool["gpuProfile"] == {"driver": "None"}
    assert pool["nodeLabels"] == {"gcluster.local/pool": "train"}


def test_a_spot_pool_costs_at_most_what_is_reported() -> None:
    text = AKS.replace("count: 2", "count: 2, market: [{spot_max_usd_per_hour: 20}]")
    pool = Graph(recorded(parsed(text))).only("AgentPool").inputs
    assert (pool["scaleSetPriority"], pool["spotMaxPrice"]) == ("Spot", 20)


@pytest.mark.parametrize(
    ("name", "answer"),
    [("train", "train"), ("abcdefghijkl", "abcdefghijkl"), ("a-very-long-pool", "averylab7fe1")],
)
def test_names_of_node_pools_are_short(name: str, answer: str) -> None:
    found = pool_name(name)
    assert found[:6] == answer[:6]
    assert len(found) <= 12
    assert found.isalnum()


def test_several_api_servers_are_behind_an_internal_balancer() -> None:
    graph = Graph(recorded(parsed(THREE)))
    made = graph.only("LoadBalancer").inputs
    [front] = made["frontendIPConfigurations"]
    assert front["subnet"]["id"] == "${Subnet/demo-here-compute.id}"
    assert "publicIPAddress" not in front
    [servers] = made["backendAddressPools"]
    assert len(servers["loadBalancerBackendAddresses"]) == 3
    names = {r.inputs["relativeRecordSetName"] for r in graph.of_type("PrivateRecordSet")}
    assert {"api", "head"} <= names


def test_own_disks_are_striped_by_azure_container_storage_and_the_system_takes_none() -> None:
    """As `az aks update --enable-azure-container-storage` (azure-cli, read 2026-11)."""
    graph = Graph(recorded(parsed((KUBERNETES / "aks-disks.yaml").read_text(encoding="utf-8"))))
    made = graph.only("Extension").inputs
    assert (made["extensionName"], made["extensionType"]) == (
        "acstor",
        "microsoft.azurecontainerstoragev2",
    )
    assert made["scope"] == {"cluster": {"releaseNamespace": "kube-system"}}
    assert (made["releaseTrain"], made["autoUpgradeMinorVersion"]) == ("stable", True)
    assert graph.only("AgentPool").inputs["osDiskType"] == "Managed"
    without = Graph(recorded(parsed(AKS)))
    assert without.of_type("Extension") == ()
    assert "osDiskType" not in without.only("AgentPool").inputs


def test_nodes_are_renewed_in_their_places_as_many_at_once_as_the_pool_allows() -> None:
    """learn.microsoft.com/azure/aks/upgrade-aks-node-pools-rolling (read 2026-11)."""
    tools = "{site: here, machine: Standard_D8s_v5, count: 2, kubernetes: {system: true}}"
    text = AKS.replace(
        "count: 2", "count: 30, update: {max_unavailable: 4, drain_timeout: 90m}"
    ).replace("pools:\n", f"pools:\n  tools: {tools}\n")
    waves = {p.inputs["nodeLabels"]["gcluster.local/pool"]: p.inputs["upgradeSettings"]
             for p in Graph(recorded(parsed(text))).of_type("AgentPool")}  # fmt: skip
    assert waves == {
        "train": {"maxSurge": "0", "maxUnavailable": "4", "drainTimeoutInMinutes": 90},
        "tools": {"maxSurge": "1", "drainTimeoutInMinutes": 60},
    }
    spot = AKS.replace("count: 2", "count: 2, market: [{spot_max_usd_per_hour: 20}]")
    assert "upgradeSettings" not in Graph(recorded(parsed(spot))).only("AgentPool").inputs


def test_releases_and_nodes_images_come_in_the_window_of_the_spec_alone() -> None:
    """learn.microsoft.com/azure/aks/planned-maintenance (read 2026-11)."""
    graph = Graph(recorded(parsed((KUBERNETES / "aks-disks.yaml").read_text(encoding="utf-8"))))
    windows = {m.inputs["configName"]: m.inputs["maintenanceWindow"]
               for m in graph.of_type("MaintenanceConfiguration")}  # fmt: skip
    assert windows.keys() == {"default", "aksManagedNodeOSUpgradeSchedule"}
    for window in windows.values():
        assert window == {
            "schedule": {"weekly": {"dayOfWeek": "Friday", "intervalWeeks": 1}},
            "startDate": "2027-01-15",
            "startTime": "06:00",
            "durationHours": 6,
            "utcOffset": "+00:00",
        }
    channel = graph.only("ManagedCluster").inputs["autoUpgradeProfile"]
    assert channel == {"upgradeChannel": "none", "nodeOSUpgradeChannel": "NodeImage"}
    without = Graph(recorded(parsed(AKS)))
    assert without.of_type("MaintenanceConfiguration") == ()
    profile = without.only("ManagedCluster").inputs["autoUpgradeProfile"]
    assert profile["nodeOSUpgradeChannel"] == "None"
