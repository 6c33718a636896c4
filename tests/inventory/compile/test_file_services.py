"""The clouds' NFS services on the nodes: mounted by the role nfs, as each vendor recommends."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gcluster.inventory.compile.node import node_facts
from gcluster.inventory.compile.roles import node_steps
from gcluster.inventory.compile.steps import Step
from gcluster.inventory.compile.storage.file_services import SERVICES, export_of, tunnel
from gcluster.inventory.hosts import AFTER_APPLY, ClusterInventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import AzureFilesStorage

from .test_managed_lustre import CLOUDS

CATALOG = load_catalog()
MOUNTS: dict[str, tuple[str, dict[str, Any], str, list[str], int]] = {
    "efs": ("aws", {}, "fs-0a.efs.us-east-1.amazonaws.com:/", ["vers=4.1", "noresvport"], 1),
    "fsx-openzfs": (
        "aws",
        {"capacity": "1 TiB", "throughput": "160 MB/s"},
        "fs-0a.fsx.us-east-1.amazonaws.com:/fsx",
        ["vers=4.2"],
        16,
    ),
    "filestore": ("gcp", {"capacity": "2560 GiB"}, "10.90.0.2:/share", ["vers=3"], 2),
    "azure-files": (
        "azure",
        {"capacity": "1 TiB", "account": "acmehome"},
        "acmehome.file.core.windows.net:/acmehome/home",
        ["vers=4.1", "sec=sys", "noresvport"],
        4,
    ),
    "oci-file-storage": ("oci", {}, "10.70.0.9:/home", ["vers=3", "resvport"], 1),
}


def steps(service: str, known: dict[str, str], **more: Any) -> dict[str, dict[str, Step]]:
    """Return pool -> key -> step of a spec with homes on a service."""
    cloud, answer, *_ = MOUNTS[service]
    here = CLOUDS[cloud]
    home = {"type": service, "mount": "/home", "site": "here", **answer, **more}
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"here": {"provider": cloud, **here["site"]}},
        "pools": {
            "head": {"site": "here", "role": "controller", "machine": here["head"]},
            "burst": {"site": "here", "machine": here["gpu"], "count": {"min": 0, "max": 4}},
        },
        "storage": {"home": home},
        "scheduler": {"type": "slurm"},
    }
    loaded = load_text(yaml.safe_dump(document), check=False)
    assert loaded.spec is not None, loaded.diagnostics
    inventory = ClusterInventory(cluster="demo", hosts=(), storage=known)
    facts = node_facts(loaded.spec, CATALOG, inventory)
    return {pool: {s.key: s for s in node_steps(node)} for pool, node in facts.items()}


def mount_of(found: dict[str, dict[str, Step]], pool: str) -> dict[str, Any]:
    [mount] = found[pool]["nfs.join"].variables["nfs_mounts"]
    assert isinstance(mount, dict)
    return mount


def test_every_service_is_here() -> None:
    assert {str(kind.__struct_config__.tag) for kind in SERVICES} == set(MOUNTS)


@pytest.mark.parametrize("service", MOUNTS)
def test_all_nodes_mount_it_as_its_vendor_recommends(service: str) -> None:
    _, _, device, options, connections = MOUNTS[service]
    found = steps(service, {"home": device})
    for pool in ("head", "burst"):
        mount = mount_of(found, pool)
        server, _, path = device.partition(":")
        assert (mount["path"], mount["server"], mount["export"]) == ("/home", server, path)
        assert (mount["options"], mount["connections"]) == (options, connections)
        assert mount["host"] == ""


@pytest.mark.parametrize("service", MOUNTS)
def test_before_it_is_made_nothing_is_known_of_its_server(service: str) -> None:
    assert mount_of(steps(service, {}), "burst")["server"] == AFTER_APPLY


def test_options_of_the_spec_win_over_the_vendor_s() -> None:
    answer = ["nfsvers=4.0", "actimeo=60"]
    found = mount_of(steps("efs", {"home": "10.0.0.9:/"}, options=answer), "burst")
    assert found["options"] == ["noresvport", *answer]
    of_oci = mount_of(
        steps("oci-file-storage", {"home": "10.0.0.9:/home"}, options=["noresvport"]), "burst"
    )
    assert of_oci["options"] == ["vers=3", "noresvport"]


@pytest.mark.parametrize(
    ("more", "connections", "version"),
    [
        ({"tier": "basic-ssd"}, 1, "vers=3"),
        ({"capacity": "10 TiB"}, 7, "vers=3"),
        ({"capacity": "10 TiB", "tier": "regional", "protocol": "nfs-v4.1"}, 7, "vers=4.1"),
    ],
)
def test_filestore_s_connections_follow_from_its_size(
    more: dict[str, Any], connections: int, version: str
) -> None:
    found = mount_of(steps("filestore", {"home": "10.90.0.2:/share"}, **more), "burst")
    assert (found["connections"], found["options"]) == (connections, [version])


def test_read_only_is_mounted_read_only() -> None:
    found = mount_of(steps("efs", {"home": "10.0.0.9:/"}, read_only=True), "burst")
    assert found["read_only"] is True


@pytest.mark.parametrize(
    ("device", "parts"),
    [
        ("10.0.0.9:/", ("10.0.0.9", "/")),
        ("a.file.core.windows.net:/a/home", ("a.file.core.windows.net", "/a/home")),
        (AFTER_APPLY, (AFTER_APPLY, "/")),
        ("", (AFTER_APPLY, "/")),
    ],
)
def test_what_is_mounted_is_taken_apart(device: str, parts: tuple[str, str]) -> None:
    assert export_of(device) == parts


def test_tls_goes_through_a_tunnel_with_a_port_that_stays() -> None:
    device = "acmehome.file.core.windows.net:/acmehome/home"
    found = steps("azure-files", {"home": device}, tls=True)
    mount = mount_of(found, "burst")
    assert (mount["server"], mount["tls"]) == ("acmehome.file.core.windows.net", "home")
    assert found["burst"]["nfs.install"].variables["nfs_tls"] is True
    plain = steps("azure-files", {"home": device})["burst"]["nfs.install"].variables
    assert "nfs_tls" not in plain

    storage = AzureFilesStorage(mount="/home", site="here", tls=True)
    names = [f"data{number}" for number in range(60)]
    ports = {name: tunnel(storage, name, names)["tls_port"] for name in names}
    alone = {name: tunnel(storage, name, [name])["tls_port"] for name in names}
    assert len(set(ports.values())) == len(names)
    assert sum(ports[name] != alone[name] for name in names) <= len(names) // 10
    assert set(ports.values()) <= set(range(20049, 21050))
