"""The modules of InfiniBand and RoCE on recorded machines: good ones and others."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_machine import Machine

INFINIBAND: dict[str, Any] = {
    "devices": [], "rails": 8, "gbps": 400, "leaves": [f"*-leaf{rail}:*" for rail in range(1, 9)],
    "partition_keys": ["0x8001"], "ipoib": {}, "subnet_manager": "opensm",
}  # fmt: skip
ROCE: dict[str, Any] = {
    "devices": [], "rails": 4, "gbps": 400, "managed": True, "mtu": 9000, "priority": 3,
    "dscp": 26, "congestion_dscp": 48, "ring": 8192,
}  # fmt: skip
MODULES: dict[str, tuple[str, dict[str, Any]]] = {
    "infiniband": ("infiniband_check", INFINIBAND),
    "roce": ("roce", ROCE | {"state": "verified"}),
}
"""Role -> its module and what it verifies."""
RDMA: dict[str, Any] = {"drivers": "inbox", "modules": ["mlx5_core", "mlx5_ib"]}


@pytest.fixture(autouse=True)
def kernel(machine: Machine) -> None:
    """Write what sysfs says of InfiniBand's ports and RoCE's interfaces."""
    for rail in (0, 3, 4, 5, 6, 9, 10, 11):
        machine.file(f"sys/class/infiniband/mlx5_{rail}/ports/1/pkeys/0", "0x8001\n")
    for rail in range(4):
        device, net = f"sys/class/infiniband/mlx5_{rail}", f"sys/class/net/rail{rail}"
        machine.file(f"{device}/device/net/rail{rail}/name")
        files = {
            f"{device}/tc/1/traffic_class": "Global tclass=106",
            f"{net}/mtu": "9000",
            f"{net}/ecn/roce_np/enable/3": "1",
            f"{net}/ecn/roce_rp/enable/3": "1",
            f"{net}/ecn/roce_np/cnp_dscp": "48",
            f"{net}/ecn/roce_np/cnp_802p_prio": "6",
        }
        for path, text in files.items():
            machine.file(path, f"{text}\n")


@pytest.mark.parametrize(
    ("role", "case", "message"),
    [
        ("infiniband", "port-down", "mlx5_4: the port is Down, Polling"),
        ("infiniband", "slow-rail", "mlx5_9: 200 Gb/s, not 400"),
        ("infiniband", "adapter-lost", "7 rails are up at their rate"),
        ("infiniband", "wrong-leaf", "mlx5_5: it hangs on MF0;su1-leaf5"),
        ("infiniband", "no-subnet-manager", "mlx5_11: no subnet manager answers"),
        ("infiniband", "manager-lost", "no subnet manager rules"),
        ("roce", "port-down", "mlx5_2: the port is Down, Disabled"),
        ("roce", "trust-lost", "not rail1 sorts packets by DSCP"),
        ("roce", "pfc-lost", "not rail3 keeps priority 3 lossless"),
        ("roce", "no-gid", "mlx5_2 has no RoCE v2 GID"),
        ("roce", "other-gid", "3 on mlx5_1, 5 on mlx5_2"),
        ("roce", "small-mtu", "mlx5_0 sends packets of 1024 bytes"),
        ("roce", "pause", "not rail0 pauses priorities, not all"),
    ],
)
def test_verification_names_what_is_wrong_with_a_recorded_machine(
    machine: Machine, role: str, case: str, message: str
) -> None:
    machine.play(role, case)
    module, asked = MODULES[role]
    result = machine.call(module, asked)
    assert result["failed"]
    assert message in result["msg"]


@pytest.mark.parametrize("role", MODULES)
def test_a_recorded_machine_that_is_as_asked_passes(machine: Machine, role: str) -> None:
    machine.play(role, "good")
    module, asked = MODULES[role]
    result = machine.call(module, asked)
    assert (result["failed"], result["changed"]) == (False, False), result


def test_adapters_with_different_firmware_are_named_and_no_failure(machine: Machine) -> None:
    machine.play("infiniband", "mixed-firmware")
    result = machine.call("infiniband_check", INFINIBAND)
    assert not result["failed"]
    notes = "\n".join(result["notes"])
    assert "adapters MT4129 have different firmware" in notes
    assert "28.36.1010 on mlx5_3" in notes


def test_adapters_that_forgot_everything_are_set_by_name_and_value(machine: Machine) -> None:
    machine.play("roce", "fresh")
    result = machine.call("roce", ROCE, check=True)
    assert result["changed"]
    assert "rail0 sorts packets by DSCP" in result["changes"]
    assert "rail3 keeps priority 3 lossless" in result["changes"]
    assert len(result["changes"]) == 4 * 4  # trust, PFC, rings and pause of four rails


def test_the_address_for_ipoib_keeps_the_host_part_of_the_nodes_own(machine: Machine) -> None:
    machine.play("infiniband", "good")
    missing = machine.call("ipoib_info", {"devices": ["mlx5_5"], "network": "10.200.0.0/16"})
    assert missing["msg"] == "mlx5_5 has no interface of its own: is ib_ipoib loaded?"

    machine.file("sys/class/infiniband/mlx5_5/device/net/ibp24s0/name")
    found = machine.call("ipoib_info", {"devices": ["mlx5_5"], "network": "10.200.0.0/16"})
    assert found["interface"] == "ibp24s0"
    assert found["address"].startswith("10.200.")
    assert found["address"].endswith("/16")


def test_missing_rdma_modules_are_loaded_but_never_under_a_job(machine: Machine) -> None:
    machine.tool("modinfo", "echo 0123")
    machine.tool("modprobe", 'echo "$@" > "$GCLUSTER_NODE_ROOT/loaded"')
    machine.file("sys/module/mlx5_core/version", "5.0\n")
    machine.tool("pgrep", "echo '10 slurmstepd: [7.batch]'")

    refused = machine.call("rdma_drivers", RDMA)
    assert refused["msg"] == "a job runs here: not changed: not loaded: mlx5_ib"
    assert machine.call("rdma_drivers", RDMA, check=True)["changes"] == ["not loaded: mlx5_ib"]

    machine.tool("pgrep", "exit 1")
    assert machine.call("rdma_drivers", RDMA)["changed"]
    assert (machine.root / "loaded").read_text() == "--all mlx5_ib\n"


def test_peer_memory_is_out_while_doca_loads_its_modules_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from running import module  # noqa: PLC0415  # beside this file

    for name in ("rmmod", "modprobe", "openibd"):
        machine.tool(name, f'echo "{name} $*" >>{machine.root}/calls')
    monkeypatch.setattr(module("rdma_drivers"), "OPENIBD", "openibd")
    machine.tool("modinfo", "echo 0123")
    machine.file("sys/module/mlx5_core/srcversion", "4567\n")
    machine.file("sys/module/mlx5_core/version", "25.04\n")
    machine.file("sys/module/nvidia_peermem/version")
    done = machine.call("rdma_drivers", {"drivers": "doca", "modules": ["mlx5_core"]})
    assert done["changes"] == ["mlx5_core 25.04 runs, another one is installed"], done
    calls = (machine.root / "calls").read_text().splitlines()
    assert calls == ["rmmod nvidia_peermem", "openibd restart", "modprobe nvidia_peermem"]
