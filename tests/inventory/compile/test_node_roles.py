"""Which machine gets which roles, with which versions and from which sources."""

from __future__ import annotations

from typing import Any

import yaml

from gcluster.inventory.compile.node import node_facts
from gcluster.inventory.compile.roles import node_steps, role_compilers
from gcluster.inventory.compile.steps import Step
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

CATALOG = load_catalog()
MIRROR = {"url": "https://mirror.example.edu/nvidia", "key_fingerprint": "A" * 40}


def steps_of(machine: str, **software: Any) -> dict[str, Step]:
    """Return the steps of roles on existing hosts of a machine type, by their key."""
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"room": {"provider": "bare-metal", "ssh": {"user": "ops"}}},
        "pools": {
            "head": {"site": "room", "role": "controller", "hosts": "head01"},
            "gpu": {
                "site": "room",
                "machine": machine,
                "hosts": "gpu[01-02]",
                "cpu": {"sockets": 2, "cores": 56},
                "memory": "2000 GiB",
            },
        },
        "scheduler": {"type": "slurm"},
        "software": software,
    }
    loaded = load_text(yaml.safe_dump(document))
    assert loaded.spec is not None, loaded.diagnostics
    return {step.key: step for step in node_steps(node_facts(loaded.spec, CATALOG)["gpu"])}


def test_machines_with_gpus_of_nvidia_get_its_driver_from_its_repository() -> None:
    steps = steps_of("hgx-h100-8", driver="580.126.16")

    install = steps["nvidia_driver.install"].variables
    assert install["nvidia_driver_version"] == "580.126.16"
    assert install["nvidia_driver_fabric_manager"] == "580.126.16"
    assert install["nvidia_driver_imex"] == ""
    repositories = steps["package_sources.install"].variables["package_sources_repositories"]
    assert {"nvidia-cuda"} <= {repository["name"] for repository in repositories}


def test_a_written_driver_may_go_back_and_one_of_the_lock_may_not() -> None:
    requested = steps_of("hgx-h100-8", driver="580.126.16")["nvidia_driver.preflight"]
    resolved = steps_of("hgx-h100-8")["nvidia_driver.preflight"]
    assert requested.variables["nvidia_driver_rollback"] is True
    assert resolved.variables["nvidia_driver_rollback"] is False


def test_gpus_whose_nvlink_reaches_other_nodes_get_imex_and_no_fabric_manager() -> None:
    steps = steps_of("gb200-nvl72", driver="580.126.16")
    install = steps["nvidia_driver.install"].variables
    assert install["nvidia_driver_fabric_manager"] == ""
    assert install["nvidia_driver_imex"] == "580.126.16"


def test_gpus_of_amd_get_no_driver_of_nvidia() -> None:
    assert not [key for key in steps_of("mi300x-8") if key.startswith("nvidia_driver")]


def test_a_mirror_replaces_the_vendor_with_the_same_paths_below_it() -> None:
    steps = steps_of("hgx-h100-8", sources={"nvidia-cuda": MIRROR})

    repositories = steps["package_sources.install"].variables["package_sources_repositories"]
    urls = [entry["url"] for entry in repositories if entry["name"] == "nvidia-cuda"]
    keys = {e["key_fingerprint"] for e in repositories if e["name"] == "nvidia-cuda"}
    assert urls
    assert all(url.startswith("https://mirror.example.edu/nvidia/") for url in urls)
    assert keys == {"A" * 40}


def test_every_source_of_a_role_is_in_the_catalog() -> None:
    named = {name for role in role_compilers() for name in role.sources}
    assert named - set(CATALOG.sources) == set()


def test_every_source_has_its_key_or_a_mark_that_it_is_unknown() -> None:
    silent = [
        name
        for name, source in CATALOG.sources.items()
        if source.repositories and source.key_fingerprint is None and not source.note
    ]
    assert silent == []
