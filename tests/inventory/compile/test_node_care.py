"""Health checks expect what the machine type has; other care of nodes waits for the spec's word."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from gcluster.inventory.compile.steps import Step
from gcluster.schemas.load import load_text

sys.path.insert(0, str(Path(__file__).parent))
import golden

sys.path.pop(0)


def steps(pool: str, *, gpu: dict[str, Any] | None = None, **more: Any) -> dict[str, Step]:
    """Return key -> step of a pool of a bare-metal cluster with DGX H100."""
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {
            "dc1": {
                "provider": "bare-metal",
                "ssh": {"user": "ops", "port": 2222},
                "network": {"cidr": "10.0.0.0/16"},
            }
        },
        "pools": {
            "head": {"site": "dc1", "role": "controller", "hosts": "head01"},
            "gpu": {"site": "dc1", "machine": "dgx-h100", "hosts": "gpu[001-004]", **(gpu or {})},
        },
        "scheduler": {"type": "slurm"},
        **more,
    }
    spec = load_text(yaml.safe_dump(document)).spec
    assert spec is not None
    groups = {group.name: group for group in golden.compiled(spec).groups}
    return {step.key: step for step in groups[pool].steps}


def test_a_dgx_must_have_what_the_catalog_has_and_what_the_spec_mounts() -> None:
    storage = {
        "scratch": {"type": "nfs", "server": "10.0.0.9", "mount": "/scratch", "pools": ["gpu"]},
        "home": {"type": "nfs", "server": "10.0.0.9", "mount": "/home", "pools": ["head"]},
    }
    expected = steps("gpu", storage=storage)["node_health.configure"].variables
    assert expected["node_health_gpus"] == {
        "vendor": "nvidia",
        "count": 8,
        "memory_gib": 80,
        "nvlink": True,
    }
    rails = [f"mlx5_{number}" for number in (0, 3, 4, 5, 6, 9, 10, 11)]
    nics = {"kind": "infiniband", "count": 8, "gbps": 400}
    assert expected["node_health_nics"] == [nics | {"devices": rails}]
    named = steps("gpu", gpu={"rdma": {"devices": ["mlx5_4"], "drivers": "inbox"}})
    assert named["node_health.configure"].variables["node_health_nics"] == [
        nics | {"devices": ["mlx5_4"]}
    ]
    unnamed = steps("gpu", gpu={"rdma": {"drivers": "inbox"}})["node_health.configure"].variables
    assert unnamed["node_health_nics"] == [nics], "its drivers name devices after their place"
    assert expected["node_health_mounts"] == [{"path": "/scratch", "type": "nfs"}]
    assert expected["node_health_memory_gib"] == 2048


def test_the_controller_is_reported_the_program_that_every_node_has() -> None:
    configure = steps("head")["slurm.configure"].variables
    assert configure["slurm_health_check"] == "/usr/libexec/gcluster/node-health-check"
    assert "node_health.install" in steps("gpu")


def test_the_program_is_there_before_slurm_and_queried_when_all_is_done() -> None:
    order = list(steps("gpu"))
    assert order.index("node_health.configure") < order.index("slurm.configure")
    assert order.index("node_health.verify") > order.index("allreduce.verify")


def test_nothing_is_hardened_and_no_firmware_changed_without_the_spec_s_permission() -> None:
    roles = {key for key in steps("gpu") if key.startswith(("hardening", "firmware"))}
    assert roles == {"firmware.install", "firmware.verify"}


def test_planes_hold_the_ports_that_sshd_and_the_scheduler_use() -> None:
    answer = {"management": ["192.0.2.0/24"], "fabric": ["10.9.0.0/16"]}
    configure = steps("gpu", hardening=answer)["hardening.configure"].variables
    assert configure["hardening_ssh_user"] == "ops"
    assert configure["hardening_planes"] == [
        {"name": "management", "networks": ["192.0.2.0/24"], "tcp": ["2222"], "udp": []},
        {
            "name": "nodes",
            "networks": ["10.0.0.0/16"],
            "tcp": ["1024-65535"],
            "udp": ["1024-65535"],
        },
        {"name": "fabric", "networks": ["10.9.0.0/16"], "tcp": ["1-65535"], "udp": ["1-65535"]},
    ]


def test_hardening_without_management_sets_up_no_firewall() -> None:
    configure = steps("gpu", hardening={})["hardening.configure"].variables
    assert configure["hardening_planes"] == []


def test_an_update_is_a_step_of_its_own_that_drains_and_is_where_it_is_named() -> None:
    firmware = {
        "bmc": "https://{host}-bmc.example.edu",
        "credentials": "~/bmc",
        "wanted": {"NIC_0": {"version": "28.43.1014", "image": "nic.bin", "sha256": "0" * 64}},
    }
    assert "firmware.update" not in steps("gpu", gpu={"firmware": firmware})
    named = steps("gpu", gpu={"firmware": firmware | {"update": ["NIC_0"]}})
    assert named["firmware.update"].needs_drain
    assert not named["firmware.verify"].needs_drain
    assert named["firmware.update"].variables["firmware_update"] == ["NIC_0"]
    assert "firmware.update" not in steps(
        "head", gpu={"firmware": firmware | {"update": ["NIC_0"]}}
    )
