"""The clouds' NFS services: what is made, who reaches it, what is mounted, and that it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.aws.session import Session as AwsSession
from gcluster.stacks.azure.session import Session as AzureSession
from gcluster.stacks.gcp.program.storage import network_name
from gcluster.stacks.gcp.session import Session as GcpSession
from gcluster.stacks.oci.session import Session as OciSession
from gcluster.stacks.provider import ProviderError, SiteContext
from gcluster.stacks.registry import provider

from .aws.conftest import Recorded, api, moto  # noqa: F401  # fixtures
from .azure.azure_double import AzureDouble
from .gcp.google_double import Google
from .ledger_double import RecordingLedger
from .oci.oci_double import Oracle
from .recorded_graph import Graph
from .test_file_systems import CLOUDS, SESSIONS
from .test_taking_down import CATALOG

SERVICES = {
    "efs": ("aws", ""),
    "fsx-openzfs": ("aws", "capacity: 1 TiB, throughput: 160 MB/s"),
    "filestore": ("gcp", "capacity: 2560 GiB"),
    "azure-files": ("azure", "account: acmehome, capacity: 1 TiB"),
    "oci-file-storage": ("oci", ""),
}
MADE = {
    "efs": "FileSystem",
    "fsx-openzfs": "OpenZfsFileSystem",
    "filestore": "Instance",
    "azure-files": "FileShare",
    "oci-file-storage": "FileSystem",
}
SHARE = (
    "/subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/data/providers"
    "/Microsoft.Storage/storageAccounts/acmehome/fileServices/default/shares/home"
)
NODES = "${{{kind}/demo-here-nodes.id}}"


def spec_of(service: str, how: str | None = None, site: str = "") -> ClusterSpec:
    """Return a spec with homes on a service; `site` has fields to add to the site."""
    cloud, made = SERVICES[service]
    here, (head, gpu), _ = CLOUDS[cloud]
    answer = made if how is None else how
    text = (
        "apiVersion: gcluster/v1\nname: demo\nscheduler: {type: slurm}\n"
        f"sites:\n  here: {{{here}{site}}}\n"
        f"pools:\n  head: {{site: here, role: controller, machine: {head}}}\n"
        f"  train: {{site: here, machine: {gpu}, count: 2}}\n"
        f"storage:\n  home: {{type: {service}, mount: /home, site: here, {answer}}}\n"
    )
    loaded = load_text(text, file="spec.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def graph_of(service: str, how: str | None = None, site: str = "") -> Graph:
    spec = spec_of(service, how, site)
    recorded = provider(SERVICES[service][0]).record(spec, "here")
    assert recorded is not None
    return Graph(recorded)


def context_of(service: str, how: str, folder: Path) -> SiteContext:
    return SiteContext(
        spec=spec_of(service, how),
        site="here",
        cluster_id="0a1b2c3d",
        workdir=folder,
        cache=folder,
        ledger=RecordingLedger(),
        emit=lambda _: None,
        state=f"file://{folder}/state",
        passphrase=lambda: "a secret",
    )


@pytest.mark.parametrize(
    ("service", "device"),
    [
        ("efs", "${FileSystem/demo-here-home.dnsName}:/"),
        ("fsx-openzfs", "${OpenZfsFileSystem/demo-here-home.dnsName}:/fsx"),
        (
            "azure-files",
            "acmehome.file.core.windows.net:/acmehome/${FileShare/demo-here-acmehome-home.name}",
        ),
        ("oci-file-storage", "${MountTarget/demo-here-home.ipAddress}:/home"),
    ],
)
def test_a_program_reports_what_is_mounted(service: str, device: str) -> None:
    assert graph_of(service).recorded.outputs["file-systems"] == {"home": device}


@pytest.mark.parametrize("service", SERVICES)
def test_what_holds_the_data_is_protected_and_known_as_the_storage_s(
    service: str, tmp_path: Path
) -> None:
    graph = graph_of(service)
    assert graph.only(MADE[service]).options.protect
    cloud, how = SERVICES[service]
    session = SESSIONS[cloud](context_of(service, how, tmp_path), CATALOG)
    owners = session.owners()
    mine = {urn.rpartition("::")[2] for urn, storage in owners.items() if "home" in storage}
    assert graph.only(MADE[service]).name in mine


@pytest.mark.parametrize("service", SERVICES)
def test_the_same_spec_gives_the_same_program(service: str) -> None:
    first, again = (graph_of(service).recorded for _ in range(2))
    assert first.to_json() == again.to_json()


def test_efs_is_encrypted_and_only_the_nodes_group_can_log_in_over_nfs() -> None:
    graph = graph_of("efs", site=", kms_key: alias/data")
    made = graph.only("FileSystem").inputs
    assert (made["encrypted"], made["kmsKeyId"]) == (True, "alias/data")
    assert made["throughputMode"] == "elastic"
    group = "${SecurityGroup/demo-here-nfs-home.id}"
    assert graph.only("MountTarget").inputs["securityGroups"] == [group]
    rules = [r for r in graph.of_type("SecurityGroupIngressRule")
             if r.inputs["securityGroupId"] == group]  # fmt: skip
    assert [
        (r.inputs["referencedSecurityGroupId"], r.inputs["fromPort"], r.inputs["toPort"])
        for r in rules
    ] == [(NODES.format(kind="SecurityGroup"), 2049, 2049)]
    assert not [r for r in graph.of_type("SecurityGroupEgressRule")
                if r.inputs["securityGroupId"] == group]  # fmt: skip


def test_efs_has_a_mount_target_in_each_zone_of_the_nodes() -> None:
    spec = spec_of("efs")
    text = (
        "apiVersion: gcluster/v1\nname: demo\nscheduler: {type: slurm}\n"
        "sites:\n  here: {provider: aws, region: us-east-1, zone_id: use1-az4}\n"
        "pools:\n  head: {site: here, role: controller, machine: m7i.4xlarge}\n"
        "  train: {site: here, machine: p5.48xlarge, count: 2, zones: [use1-az4, use1-az6]}\n"
        "storage:\n  home: {type: efs, mount: /home, site: here}\n"
    )
    loaded = load_text(text, file="spec.yaml", check=False)
    assert loaded.spec is not None
    assert loaded.spec != spec
    recorded = provider("aws").record(loaded.spec, "here")
    assert recorded is not None
    subnets = {str(t.inputs["subnetId"]) for t in Graph(recorded).of_type("MountTarget")}
    assert subnets == {f"${{Subnet/demo-here-compute-use1-{zone}.id}}" for zone in ("az4", "az6")}


def test_where_the_zone_of_the_subnet_is_not_known_efs_is_mounted_by_its_address() -> None:
    site = ", network: {vpc: vpc-0a, subnets: {compute: subnet-0a}, security_groups: [sg-0a]}"
    graph = graph_of("efs", site=site)
    assert graph.only("MountTarget").inputs["subnetId"] == "subnet-0a"
    device = graph.recorded.outputs["file-systems"]
    assert device == {"home": "${MountTarget/demo-here-home.ipAddress}:/"}


def test_efs_provisions_mebibytes() -> None:
    made = graph_of("efs", "throughput_mode: provisioned, throughput: 1 GiB/s").only("FileSystem")
    assert made.inputs["provisionedThroughputInMibps"] == 1024
    assert made.inputs["throughputMode"] == "provisioned"


def test_openzfs_lets_the_site_s_network_make_homes_and_leaves_no_backup_behind() -> None:
    made = graph_of("fsx-openzfs").only("OpenZfsFileSystem").inputs
    assert (made["deploymentType"], made["storageCapacity"], made["throughputCapacity"]) == (
        "SINGLE_AZ_HA_2", 1024, 160,
    )  # fmt: skip
    root = made["rootVolumeConfiguration"]
    assert isinstance(root, dict)
    exports = root["nfsExports"]
    assert isinstance(exports, dict)
    [client] = exports["clientConfigurations"]
    assert client["clients"] == "10.40.0.0/16"
    assert "no_root_squash" in client["options"]
    assert made["skipFinalBackup"] is True


def test_filestore_is_in_the_nodes_network_and_exports_to_them_alone() -> None:
    made = graph_of("filestore").only("Instance").inputs
    assert made["networks"] == [
        {
            "network": "${Network/demo-here-nodes.name}",
            "modes": ["MODE_IPV4"],
            "connectMode": "DIRECT_PEERING",
        }
    ]
    shares = made["fileShares"]
    assert isinstance(shares, dict)
    assert shares["capacityGb"] == 2560
    assert shares["nfsExportOptions"][0]["ipRanges"] == ["10.40.0.0/16"]
    assert (made["tier"], made["location"]) == ("ZONAL", "us-central1-a")


def test_regional_filestore_is_made_in_the_region() -> None:
    how = "capacity: 2560 GiB, tier: regional, protocol: nfs-v4.1"
    made = graph_of("filestore", how).only("Instance").inputs
    assert (made["tier"], made["location"]) == ("REGIONAL", "us-central1")
    assert made["protocol"] == "NFS_V4_1"


@pytest.mark.parametrize(
    ("vpc", "name"),
    [
        ("research", "research"),
        ("projects/acme-ml/global/networks/research", "research"),
        (
            "https://www.googleapis.com/compute/v1/projects/host/global/networks/research",
            "projects/host/global/networks/research",
        ),
    ],
)
def test_filestore_names_a_network_that_exists_as_google_reads_it_back(vpc: str, name: str) -> None:
    assert network_name(vpc, "acme-ml") == name


def test_a_share_of_azure_is_reached_by_a_private_endpoint_and_from_nowhere_else() -> None:
    graph = graph_of("azure-files", "account: acmehome, capacity: 1 TiB, redundancy: zrs")
    account = graph.named("demo-here-account-acmehome").inputs
    assert (account["kind"], account["sku"]) == ("FileStorage", {"name": "Premium_ZRS"})
    assert account["publicNetworkAccess"] == "Disabled"
    [connection] = graph.only("PrivateEndpoint").inputs["privateLinkServiceConnections"]
    assert connection["groupIds"] == ["file"]
    zone = graph.named("demo-here-file-zone").inputs["privateZoneName"]
    assert zone == "privatelink.file.core.windows.net"
    share = graph.only("FileShare").inputs
    assert (share["enabledProtocols"], share["shareQuota"]) == ("NFS", 1024)


def test_oci_s_mount_target_lets_the_nodes_in_and_its_export_their_network() -> None:
    graph = graph_of("oci-file-storage", 'zone: "2"')
    target, export = graph.only("MountTarget"), graph.only("Export").inputs
    assert target.inputs["availabilityDomain"] == "${availability domain 2}"
    assert target.inputs["subnetId"] == "${Subnet/demo-here-compute-subnet.id}"
    [client] = export["exportOptions"]
    assert (client["source"], client["identitySquash"]) == ("10.40.0.0/16", "NONE")
    group = "${NetworkSecurityGroup/demo-here-nfs-home.id}"
    rules = [r.inputs for r in graph.of_type("NetworkSecurityGroupSecurityRule")
             if r.inputs["networkSecurityGroupId"] == group]  # fmt: skip
    assert {rule["source"] for rule in rules} == {NODES.format(kind="NetworkSecurityGroup")}
    assert sorted(rule["tcpOptions"]["destinationPortRange"]["min"] for rule in rules) == [
        111, 2048, 2049, 2050,
    ]  # fmt: skip


@pytest.fixture
def google() -> Iterator[Google]:
    double = Google()
    yield double
    double.close()


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    double = Oracle()
    yield double
    double.close()


EFS_ID = "fs-0123456789abcdef0"


@pytest.mark.parametrize(
    ("addresses", "device"),
    [
        (["10.40.1.7"], "10.40.1.7:/"),
        (["10.40.1.7", "10.40.2.7"], f"{EFS_ID}.efs.us-east-1.amazonaws.com:/"),
    ],
)
def test_an_efs_that_exists_is_mounted_by_its_only_address_or_else_its_name(
    addresses: list[str],
    device: str,
    api: Recorded,  # noqa: F811  # the fixture
    tmp_path: Path,
) -> None:
    answers = Recorded(api)
    targets = [{"IpAddress": address} for address in addresses]
    answers.record("efs", "DescribeMountTargets", json.dumps({"MountTargets": targets}).encode())
    context = context_of("efs", f"existing: {EFS_ID}", tmp_path)
    assert AwsSession(context, CATALOG, api).outputs().file_systems == {"home": device}


def test_an_efs_without_mount_targets_is_refused(
    api: Recorded,  # noqa: F811  # the fixture
    tmp_path: Path,
) -> None:
    Recorded(api).record("efs", "DescribeMountTargets", b'{"MountTargets": []}')
    context = context_of("efs", f"existing: {EFS_ID}", tmp_path)
    with pytest.raises(ProviderError, match="no mount target") as refused:
        AwsSession(context, CATALOG, api).outputs()
    assert refused.value.diagnostics[0].code == "GC1185"


@pytest.mark.parametrize("id_", ["fs-0123456789abcdef0", "fsvol-0123456789abcdef0"])
def test_of_openzfs_a_volume_is_mounted_or_the_root_volume(
    id_: str,
    api: Recorded,  # noqa: F811  # the fixture
    tmp_path: Path,
) -> None:
    answers = Recorded(api)
    system = {
        "DNSName": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
        "OpenZFSConfiguration": {"RootVolumeId": "fsvol-0123456789abcdef0"},
    }
    volume = {
        "FileSystemId": "fs-0123456789abcdef0",
        "OpenZFSConfiguration": {"VolumePath": "/fsx/home"},
    }
    answers.record("fsx", "DescribeFileSystems", json.dumps({"FileSystems": [system]}).encode())
    answers.record("fsx", "DescribeVolumes", json.dumps({"Volumes": [volume]}).encode())
    context = context_of("fsx-openzfs", f"existing: {id_}", tmp_path)
    found = AwsSession(context, CATALOG, api).outputs().file_systems
    assert found == {"home": f"{system['DNSName']}:/fsx/home"}


def test_google_is_queried_for_an_existing_instance(google: Google, tmp_path: Path) -> None:
    name = "projects/acme-ml/locations/us-central1-a/instances/home"
    google.fixed[f"/filestore/{name}"] = (
        200,
        {"networks": [{"ipAddresses": ["10.90.0.2"]}], "fileShares": [{"name": "nfsshare"}]},
    )
    context = context_of("filestore", f"existing: {name}", tmp_path)
    found = GcpSession(context, CATALOG, google.api()).outputs()
    assert found.file_systems == {"home": "10.90.0.2:/nfsshare"}


def test_a_share_that_exists_is_mounted_where_it_supports_nfs(tmp_path: Path) -> None:
    azure = AzureDouble()
    azure.answers[SHARE] = {"name": "home", "properties": {"enabledProtocols": "NFS"}}
    session: Callable[[], AzureSession] = lambda: AzureSession(  # noqa: E731
        context_of("azure-files", f"existing: {SHARE}", tmp_path), CATALOG, azure.api()
    )
    assert session().outputs().file_systems == {
        "home": "acmehome.file.core.windows.net:/acmehome/home"
    }
    azure.answers[SHARE] = {"name": "home", "properties": {}}
    with pytest.raises(ProviderError, match="serves SMB"):
        session().outputs()


def test_oci_is_queried_which_mount_target_exports_a_file_system(
    oracle: Oracle, tmp_path: Path
) -> None:
    id_ = "ocid1.filesystem.oc1.iad.home"
    oracle.fixed[f"GET files/fileSystems/{id_}"] = {
        "compartmentId": "ocid1.compartment.oc1..data",
        "availabilityDomain": "Uocm:AD-1",
    }
    oracle.fixed["GET files/exports"] = [{"path": "/home", "exportSetId": "ocid1.exportset..a"}]
    oracle.fixed["GET files/mountTargets"] = [{"privateIpIds": ["ocid1.privateip..a"]}]
    oracle.fixed["GET network/privateIps/ocid1.privateip..a"] = {"ipAddress": "10.40.0.9"}
    context = context_of("oci-file-storage", f"existing: {id_}", tmp_path)
    found = OciSession(context, CATALOG, oracle.api()).outputs()
    assert found.file_systems == {"home": "10.40.0.9:/home"}
    oracle.fixed["GET files/mountTargets"] = []
    with pytest.raises(ProviderError, match="no mount target"):
        OciSession(context, CATALOG, oracle.api()).outputs()
