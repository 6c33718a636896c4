"""Which machines get job containers and the clouds' fabrics, and from which files."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.compile import compile_cluster
from gcluster.inventory.compile.gpu.containers import (
    PLUGIN_LINE,
    TASK_PROLOG_LINE,
    plugin_lines,
)
from gcluster.inventory.compile.node import NodeFacts, node_facts
from gcluster.inventory.compile.roles import node_steps
from gcluster.inventory.compile.slurm.daemons import TASK_PROLOG
from gcluster.inventory.compile.steps import Step
from gcluster.inventory.hosts import ClusterInventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

CATALOG = load_catalog()
AWS = {
    "provider": "aws",
    "region": "us-east-1",
    "zone_id": "use1-az6",
    "ssh": {"tunnel": "instance-connect"},
}
GCP = {
    "provider": "gcp",
    "project": "demo-project",
    "region": "us-central1",
    "zone": "us-central1-b",
    "ssh": {"tunnel": "iap"},
}
ROOM = {"provider": "bare-metal", "ssh": {"user": "ops"}}
DIGEST = "sha256:" + "a" * 64


def facts_of(site: dict[str, Any], machine: str, **software: Any) -> dict[str, NodeFacts]:
    """Return what is known of a head and of machines of a type."""
    own = site["provider"] == "bare-metal"
    head = {"hosts": "head01"} if own else {"machine": HEADS[site["provider"]], "count": 1}
    compute = {"hosts": "gpu[01-02]"} if own else {"count": 2}
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"site": site},
        "pools": {
            "head": {"site": "site", "role": "controller", **head},
            "gpu": {"site": "site", "machine": machine, **compute},
        },
        "scheduler": {"type": "slurm"},
        "software": software,
    }
    loaded = load_text(yaml.safe_dump(document))
    assert loaded.spec is not None, loaded.diagnostics
    return node_facts(loaded.spec, CATALOG)


HEADS = {"aws": "m7i.4xlarge", "gcp": "n2-standard-8"}


def steps_of(
    site: dict[str, Any], machine: str, pool: str = "gpu", **software: Any
) -> dict[str, Step]:
    """Return the steps of roles by their key."""
    return {s.key: s for s in node_steps(facts_of(site, machine, **software)[pool])}


@pytest.mark.parametrize(
    ("machine", "interfaces"),
    [("p5.48xlarge", 32), ("p5en.48xlarge", 16), ("p6-b200.48xlarge", 8)],
)
def test_efa_must_have_as_many_interfaces_as_the_machine(machine: str, interfaces: int) -> None:
    steps = steps_of(AWS, machine)
    install, verify = steps["efa.install"].variables, steps["efa.verify"].variables
    version = install["efa_version"]
    assert verify["efa_interfaces"] == interfaces
    assert install["efa_url"].endswith(f"/aws-efa-installer-{version}.tar.gz")
    assert install["efa_signature_url"] == install["efa_url"] + ".sig"
    assert install["efa_key_fingerprint"] == CATALOG.sources["aws-efa"].key_fingerprint


def test_a_mirror_of_efa_has_installer_signature_and_key_below_it() -> None:
    mirror = {"aws-efa": {"url": "https://mirror.example.edu/efa"}}
    install = steps_of(AWS, "p5.48xlarge", sources=mirror)["efa.install"].variables
    urls = [install[f"efa_{name}"] for name in ("url", "signature_url", "key_url")]
    assert all(url.startswith("https://mirror.example.edu/efa/aws-efa-installer") for url in urls)


def test_tcpxo_runs_images_by_the_digests_that_are_known() -> None:
    steps = steps_of(GCP, "a3-megagpu-8g")
    requested = steps["gpudirect_tcpx.configure"].variables
    assert requested["gpudirect_tcpx_kind"] == "tcpxo"
    assert requested["gpudirect_tcpx_nics"] == 8
    assert requested["gpudirect_tcpx_daemon"].endswith("gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21")
    assert requested["gpudirect_tcpx_daemon_digest"].startswith("sha256:8d9e10fd")
    assert steps["container_toolkit.install"].variables["container_toolkit_docker"] is True


def test_a_digest_that_is_unknown_comes_from_the_spec() -> None:
    path = "gpudirect-tcpx/tcpgpudmarxd-dev:v2.0.12"
    sources = {"google-gpudirect": {"checksums": {path: DIGEST}}}
    answer = steps_of(GCP, "a3-highgpu-8g", sources=sources)["gpudirect_tcpx.preflight"].variables
    assert answer["gpudirect_tcpx_daemon_digest"] == DIGEST
    assert answer["gpudirect_tcpx_plugin_digest"] == ""
    assert answer["gpudirect_tcpx_daemon"].endswith(path)


def test_gib_is_for_its_own_fabric_and_from_googles_packages() -> None:
    steps = steps_of(GCP, "a3-ultragpu-8g")
    assert steps["gib.verify"].variables == {"gib_version": "1.1.0", "gib_interfaces": 8}
    named = steps["package_sources.install"].variables["package_sources_repositories"]
    assert "google-gib" in {repository["name"] for repository in named}
    assert "google-tcpxo" not in {repository["name"] for repository in named}


@pytest.mark.parametrize(
    ("site", "machine"), [(ROOM, "hgx-h100-8"), (AWS, "p5.48xlarge"), (GCP, "a3-ultragpu-8g")]
)
def test_without_containers_there_are_no_tools_for_them(site: dict[str, Any], machine: str) -> None:
    roles = {step.role for step in steps_of(site, machine).values()}
    assert not roles & {"container_toolkit", "enroot_pyxis"}


def test_containers_bring_enroot_to_nodes_and_pyxis_to_submit_hosts() -> None:
    node = steps_of(ROOM, "hgx-h100-8", containers="pyxis")
    head = steps_of(ROOM, "hgx-h100-8", pool="head", containers="pyxis")
    files = node["enroot_pyxis.install"].variables["enroot_pyxis_enroot_files"]["Debian"]
    assert files[0]["url"].endswith("/v3.5.0/enroot_3.5.0-1_amd64.deb")
    assert node["enroot_pyxis.configure"].variables["enroot_pyxis_runs_containers"] is True
    assert head["enroot_pyxis.configure"].variables["enroot_pyxis_runs_containers"] is False
    assert node["container_toolkit.verify"].variables["container_toolkit_gpus"] == 8
    assert "container_toolkit.install" not in head


def test_checksums_of_enroot_come_from_the_spec() -> None:
    path = "v3.5.0/enroot_3.5.0-1_amd64.deb"
    sources = {"enroot": {"checksums": {path: DIGEST}}}
    node = steps_of(ROOM, "hgx-h100-8", containers="pyxis", sources=sources)
    files = node["enroot_pyxis.preflight"].variables["enroot_pyxis_enroot_files"]["Debian"]
    assert [file["checksum"] for file in files] == [DIGEST, ""]


def test_gpus_of_amd_get_amds_toolkit() -> None:
    steps = steps_of(ROOM, "mi300x-8", containers="pyxis")
    assert steps["container_toolkit.install"].variables["container_toolkit_vendor"] == "amd"
    named = steps["package_sources.install"].variables["package_sources_repositories"]
    assert "nvidia-container-toolkit" not in {repository["name"] for repository in named}


@pytest.mark.parametrize(
    ("site", "machine", "paths", "libraries"),
    [
        (ROOM, "dgx-h100", ["/dev/infiniband"], []),
        (ROOM, "mi300x-8", ["/dev/kfd", "/dev/dri"], []),
        (AWS, "p5.48xlarge", ["/dev/infiniband"], ["/opt/amazon/efa", "/opt/amazon/ofi-nccl"]),
        (GCP, "a3-megagpu-8g", ["/var/lib/tcpxo", "/dev/aperture_devices"], []),
        (GCP, "a3-highgpu-8g", ["/var/lib/tcpx", "/run/tcpx"], []),
        (GCP, "a3-ultragpu-8g", ["/usr/local/gib", "/dev/infiniband"], []),
    ],
)
def test_containers_have_the_devices_and_libraries_of_their_fabric(
    site: dict[str, Any], machine: str, paths: list[str], libraries: list[str]
) -> None:
    steps = steps_of(site, machine, containers="pyxis")
    given = steps["enroot_pyxis.configure"].variables
    assert given["enroot_pyxis_paths"] == paths
    assert given["enroot_pyxis_libraries"] == libraries
    assert steps["enroot_pyxis.verify"].variables["enroot_pyxis_paths"] == paths


def test_slurm_loads_the_plugin_where_machines_run_containers() -> None:
    assert plugin_lines(facts_of(ROOM, "hgx-h100-8", containers="pyxis").values()) == [PLUGIN_LINE]
    assert plugin_lines(facts_of(ROOM, "hgx-h100-8").values()) == []


@pytest.mark.parametrize("containers", ["pyxis", "none"])
def test_the_task_prolog_runs_before_a_container_is_entered_and_not_inside_it(
    containers: str,
) -> None:
    loaded = load_text(f"""\
apiVersion: gcluster/v1
name: demo
sites: {{room: {{provider: bare-metal, ssh: {{user: ops}}}}}}
software: {{containers: {containers}}}
pools:
  head: {{site: room, role: controller, hosts: head01}}
  gpu: {{site: room, machine: dgx-h100, hosts: gpu01}}
scheduler: {{type: slurm}}
""")
    assert loaded.spec is not None, loaded.diagnostics
    hosts = bare_metal_hosts(loaded.spec, "room")
    compiled = compile_cluster(loaded.spec, ClusterInventory(cluster="demo", hosts=hosts), CATALOG)
    (slurm,) = (
        step.variables
        for group in compiled.groups
        for step in group.steps
        if group.name == "head" and step.key == "slurm.configure"
    )
    if containers == "none":
        assert slurm["slurm_task_prolog"] == TASK_PROLOG
    else:
        assert "slurm_task_prolog" not in slurm
        assert slurm["slurm_plugins"] == [f"{TASK_PROLOG_LINE} {TASK_PROLOG}", PLUGIN_LINE]


@pytest.mark.parametrize("mixed", ["containers: pyxis", "containers: none"])
def test_a_pool_has_containers_of_its_own_and_the_others_only_the_plugin(mixed: str) -> None:
    whole = "none" if "pyxis" in mixed else "pyxis"
    loaded = load_text(f"""\
apiVersion: gcluster/v1
name: demo
sites: {{room: {{provider: bare-metal, ssh: {{user: ops}}}}}}
software: {{containers: {whole}}}
pools:
  head: {{site: room, role: controller, hosts: head01}}
  one: {{site: room, machine: dgx-h100, hosts: one01, software: {{{mixed}}}}}
  two: {{site: room, machine: dgx-h100, hosts: two01}}
scheduler: {{type: slurm}}
""")
    assert loaded.spec is not None, loaded.diagnostics
    hosts = bare_metal_hosts(loaded.spec, "room")
    compiled = compile_cluster(loaded.spec, ClusterInventory(cluster="demo", hosts=hosts), CATALOG)
    runs = {
        group.name: [
            step.variables["enroot_pyxis_runs_containers"]
            for step in group.steps
            if step.key == "enroot_pyxis.configure"
        ]
        for group in compiled.groups
    }
    assert runs == {"head": [False], "one": [whole == "none"], "two": [whole == "pyxis"]}
