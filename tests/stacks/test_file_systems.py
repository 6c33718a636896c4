"""What is mounted of a cloud's Lustre: out of the stack that made it, or queried from the cloud."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.aws.session import Session as AwsSession
from gcluster.stacks.azure.session import Session as AzureSession
from gcluster.stacks.gcp.session import Session as GcpSession
from gcluster.stacks.oci.session import Session as OciSession
from gcluster.stacks.provider import SiteContext
from gcluster.stacks.pulumi.session import SiteSession
from gcluster.stacks.registry import provider

from .aws.conftest import Recorded, api, moto  # noqa: F401  # fixtures
from .azure.azure_double import AzureDouble
from .engine_double import Engines
from .gcp.google_double import Google
from .ledger_double import RecordingLedger
from .oci.oci_double import Oracle
from .test_taking_down import CATALOG, MACHINES, SITES, SIZES

CLOUDS = {
    "aws": (SITES["aws"], MACHINES["aws"], SIZES["aws"]),
    "gcp": (SITES["gcp"], MACHINES["gcp"], f"{SIZES['gcp']}, fsname: quick"),
    "azure": (SITES["azure"], MACHINES["azure"], SIZES["azure"]),
    "oci": (
        (
            "provider: oci, region: us-ashburn-1, tenancy: ocid1.tenancy.oc1..acme, "
            "compartment: ocid1.compartment.oc1..research"
        ),
        ("VM.Standard.E5.Flex-8-128", "BM.GPU.H100.8"),
        "capacity: 31200 GiB, throughput: 125 MB/s/TiB, fsname: quick",
    ),
}
SESSIONS: dict[str, type[SiteSession]] = {
    "aws": AwsSession,
    "gcp": GcpSession,
    "azure": AzureSession,
    "oci": OciSession,
}
IDS = {
    "aws": "fs-0123456789abcdef0",
    "gcp": "projects/acme-ml/locations/us-central1-a/instances/shared",
    "azure": "/subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/data/providers/"
    "Microsoft.StorageCache/amlFilesystems/shared",
    "oci": "ocid1.lustrefilesystem.oc1.iad.shared",
}
MOUNTED = {
    "aws": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com@tcp:/xyzabcdb",
    "gcp": "10.90.0.2@tcp:/shared",
    "azure": "10.60.2.4@tcp:/lustrefs",
    "oci": "10.70.0.4@tcp:/shared",
}
Opened = Callable[..., SiteSession]


def spec_of(cloud: str, how: str) -> ClusterSpec:
    site, (head, gpu), _ = CLOUDS[cloud]
    text = (
        "apiVersion: gcluster/v1\nname: demo\nscheduler: {type: slurm}\n"
        f"sites:\n  here: {{{site}}}\n"
        f"pools:\n  head: {{site: here, role: controller, machine: {head}}}\n"
        f"  train: {{site: here, machine: {gpu}, count: 2}}\n"
        f"storage:\n  fast: {{type: lustre, mount: /fast, site: here, {how}}}\n"
    )
    loaded = load_text(text, file="spec.yaml", check=False)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def context_of(cloud: str, how: str, folder: Path) -> SiteContext:
    return SiteContext(
        spec=spec_of(cloud, how),
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
    ("cloud", "device"),
    [
        (
            "aws",
            (
                "${LustreFileSystem/demo-here-fast.dnsName}@tcp:/"
                "${LustreFileSystem/demo-here-fast.mountName}"
            ),
        ),
        ("gcp", "${Instance/demo-here-fast.mountPoint}"),
        (
            "oci",
            (
                "${FileStorageLustreFileSystem/demo-here-fast.managementServiceAddress}@"
                "${FileStorageLustreFileSystem/demo-here-fast.lnet}:/quick"
            ),
        ),
    ],
)
def test_a_program_shows_what_is_mounted_of_the_file_systems_it_makes(
    cloud: str, device: str, tmp_path: Path
) -> None:
    recorded = provider(cloud).record(context_of(cloud, CLOUDS[cloud][2], tmp_path).spec, "here")
    assert recorded is not None
    assert recorded.outputs["file-systems"] == {"fast": device}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_what_a_stack_made_is_read_from_it_and_nothing_is_known_before(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks = Engines()
    monkeypatch.setattr("gcluster.stacks.pulumi.engine.automation.Engine", stacks)
    session = SESSIONS[cloud](context_of(cloud, CLOUDS[cloud][2], tmp_path), CATALOG)
    assert session.outputs().file_systems == {}
    stacks.outputs = {"file-systems": {"fast": MOUNTED[cloud], "of-another-spec": "x"}}
    assert session.outputs().file_systems == {"fast": MOUNTED[cloud]}


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


def test_aws_is_queried_for_an_existing_file_system(api: Recorded, tmp_path: Path) -> None:  # noqa: F811  # the fixture
    answers = Recorded(api)
    found = {"DNSName": MOUNTED["aws"].partition("@")[0]}
    found["LustreConfiguration"] = {"MountName": "xyzabcdb"}
    answers.record("fsx", "DescribeFileSystems", json.dumps({"FileSystems": [found]}).encode())
    context = context_of("aws", f"existing: {IDS['aws']}", tmp_path)
    assert AwsSession(context, CATALOG, api).outputs().file_systems == {"fast": MOUNTED["aws"]}


def test_google_is_queried_for_an_existing_file_system(google: Google, tmp_path: Path) -> None:
    google.fixed[f"/lustre/{IDS['gcp']}"] = (200, {"mountPoint": MOUNTED["gcp"]})
    context = context_of("gcp", f"existing: {IDS['gcp']}", tmp_path)
    found = GcpSession(context, CATALOG, google.api()).outputs()
    assert found.file_systems == {"fast": MOUNTED["gcp"]}


def test_azure_is_queried_for_an_existing_file_system(tmp_path: Path) -> None:
    azure = AzureDouble()
    azure.answers[IDS["azure"]] = {"properties": {"clientInfo": {"mgsAddress": "10.60.2.4"}}}
    context = context_of("azure", f"existing: {IDS['azure']}", tmp_path)
    found = AzureSession(context, CATALOG, azure.api()).outputs()
    assert found.file_systems == {"fast": MOUNTED["azure"]}


def test_oci_is_queried_for_an_existing_file_system(oracle: Oracle, tmp_path: Path) -> None:
    oracle.fixed[f"GET lustre/lustreFileSystems/{IDS['oci']}"] = {
        "managementServiceAddress": "10.70.0.4",
        "lnet": "tcp",
        "fileSystemName": "shared",
    }
    context = context_of("oci", f"existing: {IDS['oci']}", tmp_path)
    found = OciSession(context, CATALOG, oracle.api()).outputs()
    assert found.file_systems == {"fast": MOUNTED["oci"]}
