"""The program of a site on Azure: what it makes, and what it must never make."""

from __future__ import annotations

import json
from ipaddress import ip_network

import msgspec
import pytest
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.stacks.azure.plan.types import LivePool, LiveState
from gcluster.stacks.pulumi.recording.graph import tags_of

from ...golden_files import GoldenFiles
from ..graph_comparison import agrees, diff
from ..machine_table import table
from .recorded_cases import CASES, FULL, MACHINES, example, graph, kept, parsed, recorded, spec_of

ELASTIC = "Standard_ND96isr_H100_v5"
PLAIN = "Standard_ND96isr_H200_v5"
AMD = "Standard_ND96isr_MI300X_v5"
SPREAD = "Standard_D8s_v5"
GUEST = "Standard_D16s_v5"
every = pytest.mark.parametrize("machine", MACHINES)


def profile(machine: str) -> dict[str, object]:
    [scale_set] = graph(machine).of_type("VirtualMachineScaleSet")
    found = scale_set.inputs["virtualMachineProfile"]
    assert isinstance(found, dict)
    return found


def text(machine: str) -> str:
    return kept(example(machine)).to_json().decode()


def test_the_graph_is_the_one_that_was_reviewed(golden: GoldenFiles) -> None:
    golden.check(CASES / "graph.json", kept(example(FULL)).to_json())


def test_machines_differ_in_what_was_reviewed(golden: GoldenFiles) -> None:
    others = {machine: example(machine) for machine in MACHINES if machine != FULL}
    golden.check(CASES / "machines.yaml", table(example(FULL), others, "name"))


@every
def test_recording_twice_gives_the_same_bytes_and_a_preview_agrees(machine: str) -> None:
    spec = spec_of(machine)
    assert recorded(spec).to_json() == example(machine).to_json()
    assert agrees(example(machine), recorded(spec, preview=True))


@every
def test_everything_is_tagged_sits_in_a_component_and_registers_outputs(machine: str) -> None:
    found = example(machine)
    spec = spec_of(machine)
    [site] = spec.sites
    assert untagged(found, {"gcluster-cluster": spec.name, "gcluster-site": site}) == ()
    assert orphans(found) == ()
    assert unregistered(found) == ()


@every
def test_everything_is_made_in_the_subscription_of_the_site(machine: str) -> None:
    provider = graph(machine).only("azure-native")
    assert provider.inputs["subscriptionId"] == "00000000-0000-0000-0000-000000000000"
    made = [r for r in example(machine).resources if r.custom and r != provider]
    assert {r.options.provider for r in made} == {provider.urn}


@every
def test_no_compute_machine_has_a_public_address(machine: str) -> None:
    interfaces = json.dumps(msgspec.to_builtins(profile(machine)["networkProfile"]))
    assert "publicIP" not in interfaces
    assert "loadBalancer" not in interfaces


def test_only_logins_that_request_it_have_a_public_address() -> None:
    addresses = {r.name for r in graph(SPREAD).of_type("PublicIPAddress")}
    assert addresses == {"prepare-north-nat", "prepare-north-door", "prepare-north-door002"}
    named = {r.name for r in graph(PLAIN).of_type("PublicIPAddress")}
    assert named == {"serving-west-nat", "serving-west-head"}


@every
def test_ssh_is_let_in_from_the_admins_only_and_nothing_else_is(machine: str) -> None:
    [site] = spec_of(machine).sites.values()
    for group in graph(machine).of_type("NetworkSecurityGroup"):
        rules = group.inputs["securityRules"]
        assert isinstance(rules, list)
        for rule in rules:
            assert isinstance(rule, dict)
            assert rule["destinationPortRange"] == "22"
            assert rule["sourceAddressPrefixes"] == site.network.admin_cidrs  # type: ignore[union-attr]
            assert "sourceAddressPrefix" not in rule
    assert "0.0.0.0/0" not in text(machine)


@every
def test_compute_machines_are_in_the_group_that_allows_no_login(machine: str) -> None:
    found = graph(machine)
    [closed] = [r for r in found.of_type("NetworkSecurityGroup") if r.name.endswith("-closed")]
    assert closed.inputs["securityRules"] == []
    interfaces = profile(machine)["networkProfile"]
    group = f'"id": "${{NetworkSecurityGroup/{closed.name}.id}}"'
    assert group in json.dumps(msgspec.to_builtins(interfaces))


@every
def test_no_network_touches_the_addresses_of_infiniband(machine: str) -> None:
    for subnet in graph(machine).of_type("Subnet"):
        prefix = subnet.inputs["addressPrefix"]
        assert not ip_network(str(prefix)).overlaps(ip_network("172.16.0.0/16"))


@pytest.mark.parametrize("machine", [name for name in MACHINES if "_ND" in name])
def test_infiniband_is_in_one_single_placement_group_of_uniform_machines(machine: str) -> None:
    scale_set = graph(machine).only("VirtualMachineScaleSet")
    assert scale_set.inputs["singlePlacementGroup"] is True
    assert scale_set.inputs["orchestrationMode"] == "Uniform"
    assert scale_set.inputs["overprovision"] is False


def test_without_infiniband_a_pool_may_be_larger_than_a_placement_group() -> None:
    scale_set = graph(SPREAD).only("VirtualMachineScaleSet")
    assert scale_set.inputs["singlePlacementGroup"] is False
    assert scale_set.inputs["sku"] == {
        "name": "Standard_D8s_v5", "tier": "Standard", "capacity": 120,
    }  # fmt: skip


def test_amd_machines_boot_the_image_with_rocm() -> None:
    storage = profile(AMD)["storageProfile"]
    assert isinstance(storage, dict)
    assert storage["imageReference"] == {
        "publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204-rocm",
        "version": "latest",
    }  # fmt: skip


def test_a_spot_pool_sets_its_price_and_is_deleted_on_eviction() -> None:
    found = profile(ELASTIC)
    assert found["priority"] == "Spot"
    assert found["evictionPolicy"] == "Delete"
    assert found["billingProfile"] == {"maxPrice": 60}
    assert "billingProfile" not in profile(PLAIN)


def test_a_walked_fallback_list_buys_on_the_next_option() -> None:
    purchased = dict.fromkeys(["train001", "train002"], "on-demand-1")
    moved = Graph(recorded(spec_of(ELASTIC), live_state=LiveState(purchased=purchased)))
    found = moved.only("VirtualMachineScaleSet").inputs["virtualMachineProfile"]
    assert isinstance(found, dict)
    assert found["priority"] == "Regular"


@pytest.mark.parametrize("machine", [ELASTIC, GUEST])
def test_with_a_customers_key_disks_use_it_and_hosts_encrypt_too(machine: str) -> None:
    for found in graph(machine).recorded.resources:
        if found.type.endswith((":VirtualMachine", ":VirtualMachineScaleSet")):
            whole = json.dumps(msgspec.to_builtins(found.inputs))
            assert '"encryptionAtHost": true' in whole
            assert '"diskEncryptionSet"' in whole


def test_those_who_encrypts_with_a_key_waits_for_the_right_to_use_it() -> None:
    found = graph(ELASTIC)
    for kind in ("StorageAccount", "AmlFilesystem", "DiskEncryptionSet"):
        before = {resource.type for resource in found.needs(found.only(kind))}
        assert "azure-native:authorization:RoleAssignment" in before


def test_containers_are_reached_through_the_network_only() -> None:
    account = graph(ELASTIC).only("StorageAccount").inputs
    assert account["publicNetworkAccess"] == "Disabled"
    assert account["allowBlobPublicAccess"] is False
    assert account["allowSharedKeyAccess"] is False
    assert account["minimumTlsVersion"] == "TLS1_2"
    blobs = graph(ELASTIC).only("BlobServiceProperties").inputs
    assert blobs["isVersioningEnabled"] is True
    assert len(graph(ELASTIC).of_type("PrivateEndpoint")) == 1


def test_an_account_of_real_folders_is_reached_by_its_blobs_and_its_folders() -> None:
    """Private endpoints of Data Lake Storage: learn.microsoft.com, "Use private endpoints"."""
    spec = spec_of(ELASTIC)
    data = msgspec.structs.replace(spec.storage["data"], hierarchical_namespace=True)
    found = Graph(recorded(msgspec.structs.replace(spec, storage={**spec.storage, "data": data})))
    assert found.only("StorageAccount").inputs["isHnsEnabled"] is True
    assert found.only("BlobServiceProperties").inputs["isVersioningEnabled"] is False
    doors = [json.dumps(door.inputs, default=str) for door in found.of_type("PrivateEndpoint")]
    assert sorted("'groupIds': ['dfs']" in door or '["dfs"]' in door for door in doors) == [
        False,
        True,
    ]
    zones = {zone.inputs["privateZoneName"] for zone in found.of_type("PrivateZone")}
    assert "privatelink.dfs.core.windows.net" in zones


DATA = ("StorageAccount", "BlobContainer", "BlobServiceProperties", "AmlFilesystem")


@every
def test_data_is_protected_and_hangs_on_nothing_that_down_takes_away(machine: str) -> None:
    found = graph(machine)
    kept = [r for kind in DATA for r in found.of_type(kind)]
    seen = set()
    while kept:
        resource = kept.pop()
        if resource.urn in seen or not resource.custom or "pulumi:providers" in resource.type:
            continue
        seen.add(resource.urn)
        assert resource.options.protect, resource.name
        assert resource.options.retain_on_delete, resource.name
        kept += found.needs(resource)


def test_nothing_is_protected_where_no_data_is_kept() -> None:
    assert [r.name for r in example(PLAIN).resources if r.options.protect] == []


def test_lustre_has_its_size_its_zone_and_the_blobs_behind_it() -> None:
    system = graph(ELASTIC).only("AmlFilesystem").inputs
    assert system["storageCapacityTiB"] == 16
    assert system["sku"] == {"name": "AMLFS-Durable-Premium-125"}
    assert system["zones"] == ["1"]
    blobs = "${BlobContainer/research-east-acmedatasets"
    assert system["hsm"] == {
        "settings": {
            "container": f"{blobs}-train.id}}",
            "loggingContainer": f"{blobs}-gcluster-lustre-logs.id}}",
            "importPrefix": "/",
        }
    }


def test_what_exists_already_is_used_and_not_made() -> None:
    found = graph(GUEST)
    for kind in (
        "ResourceGroup", "VirtualNetwork", "Subnet", "NatGateway", "PublicIPAddress",
        "PrivateZone", "UserAssignedIdentity", "RoleAssignment", "DiskEncryptionSet",
        "StorageAccount",
    ):  # fmt: skip
        assert found.of_type(kind) == (), kind
    record = found.only("PrivateRecordSet")
    assert record.inputs["privateZoneName"] == "example.edu"
    assert record.inputs["relativeRecordSetName"] == "head.gpu"
    assert record.inputs["resourceGroupName"] == "dns"


def test_a_proxy_is_the_way_out_instead_of_a_gateway() -> None:
    assert graph(AMD).of_type("NatGateway") == ()
    assert len(graph(PLAIN).of_type("NatGateway")) == 1


def test_the_burst_agent_may_change_elastic_scale_sets_and_no_other_machines() -> None:
    found = graph(ELASTIC)
    [identity] = [r for r in found.of_type("UserAssignedIdentity") if r.name.endswith("-burst")]
    scopes = {
        r.inputs["scope"]
        for r in found.of_type("RoleAssignment")
        if r.inputs["principalId"] == f"${{UserAssignedIdentity/{identity.name}.principalId}}"
    }
    assert scopes == {
        "${VirtualMachineScaleSet/research-east-train.id}", "${Subnet/research-east-compute.id}",
        "${NetworkSecurityGroup/research-east-closed.id}",
        "${UserAssignedIdentity/research-east-node.id}",
    }  # fmt: skip
    assert [r for r in graph(PLAIN).of_type("UserAssignedIdentity") if "burst" in r.name] == []


def test_a_stack_update_keeps_what_elastic_growth_has_made() -> None:
    live = {"train": LivePool(capacity=9, tags={"gcluster-names-0": "1-9:0"})}
    grown = Graph(recorded(spec_of(ELASTIC), live_state=LiveState(live=live)))
    scale_set = grown.only("VirtualMachineScaleSet")
    sku = scale_set.inputs["sku"]
    assert isinstance(sku, dict)
    assert sku["capacity"] == 9
    assert tags_of(scale_set)["gcluster-names-0"] == "1-9:0"


def test_a_fixed_pool_has_the_size_of_the_spec_whatever_runs() -> None:
    live = {"train": LivePool(capacity=7)}
    scale_set = Graph(recorded(spec_of(PLAIN), live_state=LiveState(live=live))).only(
        "VirtualMachineScaleSet"
    )
    sku = scale_set.inputs["sku"]
    assert isinstance(sku, dict)
    assert sku["capacity"] == 4


def test_another_pool_and_a_file_system_change_nothing_but_the_tag_of_the_spec() -> None:
    before = (CASES / "specs" / f"{PLAIN}.yaml").read_text(encoding="utf-8")
    after = before.replace(
        "scheduler:",
        "  more: {site: west, machine: Standard_ND96isr_H200_v5, count: 2}\n"
        "storage:\n"
        "  fast: {type: lustre, mount: /fast, site: west, capacity: 8 TiB, "
        "throughput: 250 MB/s/TiB}\n"
        "scheduler:",
    )
    change = diff(example(PLAIN), recorded(parsed(after)))
    assert change.removed == ()
    assert {path for r in change.changed for path in r.inputs} == {"tags.gcluster-spec"}
    assert len(change.added) == 4, "two components with a resource each"


def test_user_data_has_no_secret_and_leaves_host_keys_to_the_machine() -> None:
    whole = "".join(text(machine) for machine in MACHINES)
    assert "PRIVATE KEY" not in whole
    assert "adminPassword" not in whole
    assert '"disablePasswordAuthentication": false' not in whole
