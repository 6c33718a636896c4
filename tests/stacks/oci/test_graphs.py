"""What is requested from OCI for each machine type, and what must never be in it."""

from __future__ import annotations

import base64

import msgspec
import pytest
from oci_cases import (
    CASES,
    FULL,
    SITE,
    graph_of,
    launched,
    machines,
    part,
    recorded,
    spec_of,
    with_pool,
)
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSpec, Link
from gcluster.schemas.spec.sites.bare_metal import BareMetalNetwork, BareMetalSite, Ssh

from ...golden_files import GoldenFiles
from ..graph_comparison import agrees
from ..machine_table import table

every_machine = pytest.mark.parametrize("machine", machines())
BUCKET = "oci:ObjectStorage/bucket:Bucket"
DATA = (BUCKET, "FileStorageLustreFileSystem", "FileStorageObjectStorageLink")


def test_every_machine_type_with_gpus_of_the_catalog_has_an_example() -> None:
    types = load_catalog().machines.values()
    assert machines() == sorted(m.name for m in types if "oci" in m.sites and m.gpu)


def test_the_graph_is_the_one_that_was_reviewed(golden: GoldenFiles) -> None:
    golden.check(CASES / "graph.json", recorded(spec_of(FULL)).to_json())


def test_machines_differ_in_what_was_reviewed(golden: GoldenFiles) -> None:
    others = {machine: recorded(spec_of(machine)) for machine in machines() if machine != FULL}
    golden.check(CASES / "machines.yaml", table(recorded(spec_of(FULL)), others, "shape"))


@pytest.mark.parametrize("kind", ["TagNamespace", "Tag", "DynamicGroup", "Policy", "Budget"])
def test_what_is_the_tenancys_is_made_in_its_home_region(kind: str) -> None:
    graph = graph_of(FULL)
    through = {r.options.provider.rpartition("::")[2] for r in graph.of_type(kind) if r.custom}
    assert through == {"lab-here-home-region"}
    home = graph.named("lab-here-home-region")
    assert home.inputs["region"] == "${home region of the tenancy}"
    assert graph.only("Vcn").options.provider.endswith("::lab-here-oci")


@every_machine
def test_a_preview_agrees_with_what_is_made(machine: str) -> None:
    spec = spec_of(machine)
    assert agrees(recorded(spec), recorded(spec, preview=True)).differences == ()


@every_machine
def test_every_resource_is_tagged_and_sits_in_a_component(machine: str) -> None:
    spec, graph = spec_of(machine), recorded(spec_of(machine))
    wanted = {
        "gcluster-cluster": spec.name,
        "gcluster-site": SITE,
        "gcluster-owner": "ml-platform@example.edu",
        "cost-center": "4711",
    }
    assert untagged(graph, wanted) == ()
    assert all("gcluster-spec" in Graph(graph).tags(r) for r in graph.resources if r.takes_tags)
    assert orphans(graph) == ()
    assert unregistered(graph) == ()


def test_the_network_of_a_linked_site_is_let_in() -> None:
    alone = spec_of(FULL)
    hall = BareMetalSite(ssh=Ssh(user="ops"), network=BareMetalNetwork(cidr="10.77.0.0/16"))
    linked = msgspec.structs.replace(
        alone,
        sites={**alone.sites, "hall": hall},
        links=[Link(between=["hall", SITE], via="vpn")],
    )

    def let_in(spec: ClusterSpec) -> list[object]:
        rules = Graph(recorded(spec)).of_type("NetworkSecurityGroupSecurityRule")
        return [r.inputs["source"] for r in rules if r.inputs.get("source") == "10.77.0.0/16"]

    assert let_in(alone) == []
    assert let_in(linked) == ["10.77.0.0/16"]


@every_machine
def test_no_compute_node_has_a_public_address(machine: str) -> None:
    graph = graph_of(machine)
    for details in launched(graph):
        tags = part(details, "freeformTags")
        public = part(details, "createVnicDetails")["assignPublicIp"]
        assert public in ({True, "true"} if tags["gcluster-pool"] == "login" else {False, "false"})


@every_machine
def test_no_rule_admits_every_address(machine: str) -> None:
    graph = graph_of(machine)
    for rule in graph.of_type("NetworkSecurityGroupSecurityRule"):
        if rule.inputs["direction"] == "INGRESS":
            assert rule.inputs["source"] != "0.0.0.0/0", rule.name
    for kind in ("SecurityList", "DefaultSecurityList"):
        for rules in graph.of_type(kind):
            assert rules.inputs["ingressSecurityRules"] == [], rules.name
            assert rules.inputs["egressSecurityRules"] == [], rules.name


@every_machine
def test_ssh_is_open_to_the_administrators_on_login_nodes_alone(machine: str) -> None:
    graph = graph_of(machine)
    ssh = [
        rule
        for rule in graph.of_type("NetworkSecurityGroupSecurityRule")
        if rule.inputs.get("sourceType") == "CIDR_BLOCK"
    ]
    [rule] = ssh
    assert rule.inputs["source"] == "192.0.2.0/24"
    assert part(rule, "tcpOptions", "destinationPortRange") == {"min": 22, "max": 22}
    assert rule.inputs["networkSecurityGroupId"] == "${NetworkSecurityGroup/lab-here-login.id}"


@every_machine
def test_metadata_of_version_1_is_off_and_no_private_key_is_anywhere(machine: str) -> None:
    graph = graph_of(machine)
    for details in launched(graph):
        assert part(details, "instanceOptions")["areLegacyImdsEndpointsDisabled"] is True
        script = base64.b64decode(str(part(details, "metadata")["user_data"])).decode()
        assert "emit_keys_to_console" in script
        assert "PRIVATE KEY" not in script
    assert "PRIVATE KEY" not in graph.recorded.to_json().decode()


def test_a_fixed_pool_with_rdma_is_one_cluster_network_of_all_its_nodes() -> None:
    graph = graph_of("BM.GPU.H100.8")
    network = graph.only("ClusterNetwork")
    assert part(network, "instancePools")["size"] == 2  # as the spec says
    placed = part(network, "placementConfiguration")
    assert placed["availabilityDomain"] == "${availability domain 2}"
    details = part(graph.only("InstanceConfiguration"), "instanceDetails", "launchDetails")
    assert details["shape"] == "BM.GPU.H100.8"
    assert details["capacityReservationId"] == "ocid1.capacityreservation.oc1.iad.h100"
    assert "computeClusterId" not in details
    plugins = {p["name"] for p in part(details, "agentConfig")["pluginsConfigs"]}  # type: ignore[union-attr, index, call-overload]  # a list of objects
    assert plugins == {
        "Compute HPC RDMA Auto-Configuration",
        "Compute HPC RDMA Authentication",
    }


def test_an_elastic_pool_has_a_compute_cluster_and_a_configuration_for_each_domain() -> None:
    graph = graph_of("BM.GPU.H200.8")
    assert graph.of_type("ClusterNetwork") == ()
    clusters = {c.inputs["availabilityDomain"]: c.name for c in graph.of_type("ComputeCluster")}
    assert set(clusters) == {"${availability domain 1}", "${availability domain 2}"}
    for made in graph.of_type("InstanceConfiguration"):
        details = part(made, "instanceDetails", "launchDetails")
        where = clusters[details["availabilityDomain"]]
        assert details["computeClusterId"] == f"${{ComputeCluster/{where}.id}}"
    node = graph.named("lab-here-train001", "Instance")
    assert node.inputs["computeClusterId"] == "${ComputeCluster/lab-here-rdma-ad2.id}"


def test_an_nvlink_domain_of_several_nodes_is_a_gpu_memory_cluster() -> None:
    made = graph_of("BM.GPU.GB200.4").only("ComputeGpuMemoryCluster")
    assert made.inputs["size"] == "18"
    assert made.inputs["computeClusterId"] == "${ComputeCluster/lab-here-rdma-ad2.id}"


def test_a_compute_cluster_that_exists_is_used_and_none_is_made() -> None:
    graph = graph_of("BM.GPU.MI300X.8")
    assert graph.of_type("ComputeCluster") == ()
    nodes = [r for r in graph.of_type("Instance") if r.inputs["shape"] == "BM.GPU.MI300X.8"]
    assert {r.inputs["computeClusterId"] for r in nodes} == {"ocid1.computecluster.oc1.iad.acme"}


def test_behind_a_proxy_there_is_no_nat() -> None:
    graph = graph_of("BM.GPU.MI300X.8")
    assert graph.of_type("NatGateway") == ()
    assert graph.only("ServiceGateway")


def test_a_pool_that_is_spread_is_in_all_fault_domains_without_rdma() -> None:
    graph = graph_of("BM.GPU4.8")
    nodes = [r for r in graph.of_type("Instance") if r.inputs["shape"] == "BM.GPU4.8"]
    assert [n.inputs["faultDomain"] for n in nodes] == ["FAULT-DOMAIN-1", "FAULT-DOMAIN-2"]
    assert all("agentConfig" not in node.inputs for node in nodes)
    assert graph.of_type("ClusterNetwork") == graph.of_type("ComputeCluster") == ()


def test_what_is_brought_is_used_and_nothing_else_is_created() -> None:
    graph = graph_of("BM.GPU.A100-v2.8")
    for kind in ("Vcn", "Subnet", "RouteTable", "NatGateway", "DynamicGroup", "Policy"):
        assert graph.of_type(kind) == (), kind
    for details in launched(graph):
        vnic = part(details, "createVnicDetails")
        assert vnic["nsgIds"][0] == "ocid1.networksecuritygroup.oc1.iad.nodes"  # type: ignore[index, call-overload]  # a list
        key = part(details, "sourceDetails")["kmsKeyId"]
        assert key == "ocid1.key.oc1.iad.vault.acme"
    record = graph.only("Rrset")
    assert (record.inputs["domain"], record.inputs["zoneNameOrId"]) == (
        "head.gpu.example.edu",
        "ocid1.dns-zone.oc1.iad.acme",
    )


def test_the_nodes_reach_each_other_on_every_protocol() -> None:
    rule = graph_of("BM.GPU.H100.8").named("lab-here-nodes-in-self")
    assert rule.inputs["protocol"] == "all"
    assert rule.inputs["source"] == rule.inputs["networkSecurityGroupId"]


def test_compute_is_in_a_subnet_that_allows_no_public_address() -> None:
    graph = graph_of("BM.GPU.H100.8")
    subnet = graph.named("lab-here-compute-subnet")
    assert subnet.inputs["prohibitPublicIpOnVnic"] is True
    assert subnet.inputs["prohibitInternetIngress"] is True
    placed = part(graph.only("ClusterNetwork"), "placementConfiguration")
    primary = part(placed, "primaryVnicSubnets")
    assert primary["subnetId"] == "${Subnet/lab-here-compute-subnet.id}"


def test_data_is_protected_and_kept_and_nothing_else_of_the_machines_is() -> None:
    graph = graph_of("BM.GPU.H100.8")
    for kind in DATA:
        for made in graph.of_type(kind):
            assert made.options.protect, made.name
            assert made.options.retain_on_delete, made.name
    assert {kind for kind in DATA if graph.of_type(kind)} == set(DATA)
    for kind in ("Instance", "ClusterNetwork", "Vcn"):
        assert not any(made.options.protect for made in graph.of_type(kind))


def test_a_bucket_is_private_and_versioned() -> None:
    bucket = graph_of("BM.GPU.H100.8").only(BUCKET)
    assert bucket.inputs["accessType"] == "NoPublicAccess"
    assert bucket.inputs["versioning"] == "Enabled"
    assert bucket.inputs["name"] == "acme-checkpoints"


def test_lustre_has_the_tier_and_size_of_the_spec_and_its_link() -> None:
    graph = graph_of("BM.GPU.H100.8")
    made = graph.only("FileStorageLustreFileSystem")
    assert made.inputs["capacityInGbs"] == 31200  # as the spec says
    assert made.inputs["performanceTier"] == "MBPS_PER_TB_250"
    link = graph.only("FileStorageObjectStorageLink")
    prefix = "${namespace of the tenancy}:/acme-datasets"
    assert link.inputs["objectStoragePrefix"] == prefix


def test_nodes_may_do_what_their_buckets_need_and_no_more() -> None:
    graph = graph_of("BM.GPU.H100.8")
    group = graph.named("lab-here-node", "DynamicGroup")
    assert "instance.compartment.id = 'ocid1.compartment.oc1..research'" in str(
        group.inputs["matchingRule"]
    )
    answer = graph.named("lab-here-node-buckets", "Policy").inputs["statements"]
    assert isinstance(answer, list)
    assert all("target.bucket.name='acme-checkpoints'" in str(line) for line in answer)
    every = [str(line) for p in graph.of_type("Policy") for line in p.inputs["statements"]]  # type: ignore[union-attr]  # a list
    assert not any("manage all-resources" in line or "in tenancy" in line for line in every)


def test_a_controller_that_bursts_may_end_only_nodes() -> None:
    graph = graph_of("BM.GPU.H200.8")
    answer = graph.named("lab-here-burst", "Policy").inputs["statements"]
    assert isinstance(answer, list)
    ending = [str(line) for line in answer if "INSTANCE_DELETE" in str(line)]
    [line] = ending
    assert ".role='node'" in line
    head = graph.named("lab-here-head", "Instance")
    node = graph.named("lab-here-train001", "Instance")
    assert list(part(head, "definedTags").values()) == ["controller"]
    assert list(part(node, "definedTags").values()) == ["node"]


def test_the_budget_notifies_the_owner() -> None:
    graph = graph_of("BM.GPU.H100.8")
    assert graph.only("Budget").inputs["amount"] == 120000  # as the spec says
    rules = graph.of_type("Rule")
    assert {rule.inputs["recipients"] for rule in rules} == {"ml-platform@example.edu"}


@every_machine
def test_names_stay_when_an_unrelated_pool_is_added(machine: str) -> None:
    spec = spec_of(machine)
    more = with_pool(spec, "extra", machine="VM.Standard.E5.Flex-4-64", count=2)
    before = {r.urn: r.inputs for r in recorded(spec).resources if r.custom}
    after = {r.urn: r.inputs for r in recorded(more).resources if r.custom}
    assert before.keys() <= after.keys()
    changed = [
        urn for urn, inputs in before.items() if _without_hash(inputs) != _without_hash(after[urn])
    ]
    assert changed == []


def _without_hash(inputs: dict[str, object]) -> dict[str, object]:
    tags = inputs.get("freeformTags")
    if not isinstance(tags, dict):
        return inputs
    return {**inputs, "freeformTags": {k: v for k, v in tags.items() if k != "gcluster-spec"}}


def test_a_pool_on_another_option_is_another_cluster_network() -> None:
    spec = spec_of("BM.GPU.H100.8")
    purchased = {"train001": "on-demand-ad2", "train002": "on-demand-ad2"}
    network = Graph(recorded(spec, purchased=purchased)).only("ClusterNetwork")
    assert network.name == "lab-here-train-on-demand-ad2"
    details = Graph(recorded(spec, purchased=purchased)).only("InstanceConfiguration")
    assert "capacityReservationId" not in part(details, "instanceDetails", "launchDetails")


def test_a_pool_whose_nodes_are_not_made_leaves_nothing_of_it() -> None:
    spec = spec_of("BM.GPU.H100.8")
    graph = Graph(recorded(spec, purchased={"train001": "", "train002": ""}))
    assert graph.of_type("ClusterNetwork") == graph.of_type("InstanceConfiguration") == ()
