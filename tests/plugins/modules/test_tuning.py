"""A machine is tuned register by register, and what it doesn't have is nothing to complain of."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_machine import Machine

ASKED: dict[str, Any] = {
    "processors": True, "pcie": True, "numa_balancing": True, "transparent_hugepages": "always",
}  # fmt: skip
ACS_AT, EXPRESS_AT = 0x148, 0x60
"""Where a Broadcom PEX switch has ACS, and ConnectX-7 its PCI Express capability (`lspci -vvv`)."""


def config(*, acs: int | None = None, control: int | None = None) -> bytes:
    """Return a configuration space: ACS behind another extended capability, Express behind PM."""
    space = bytearray(4096)
    space[0x34] = 0x40
    space[0x40:0x42] = bytes((0x01, EXPRESS_AT if control is not None else 0))
    if control is not None:
        space[EXPRESS_AT] = 0x10
        space[EXPRESS_AT + 8 : EXPRESS_AT + 10] = control.to_bytes(2, "little")
    following = ACS_AT if acs is not None else 0
    space[0x100:0x104] = (following << 20 | 1 << 16 | 0x0001).to_bytes(4, "little")
    if acs is not None:
        space[ACS_AT : ACS_AT + 4] = (1 << 16 | 0x000D).to_bytes(4, "little")
        space[ACS_AT + 6 : ACS_AT + 8] = acs.to_bytes(2, "little")
    return bytes(space)


@pytest.fixture
def node(machine: Machine) -> Machine:
    """Return a node as servers come: ACS on, reads of 512 bytes, powersave, C6."""
    devices = {
        "0000:15:01.0": ("0x060400", config(acs=0x001D)),  # as lspci shows: SrcValid+ ... UpFwd+
        "0000:16:00.0": ("0x060400", config()),
        "0000:18:00.0": ("0x020700", config(control=0x2936)),
        "0000:1b:00.0": ("0x030200", config(control=0x2936, acs=0x001D)),  # a GPU: not ours
    }
    for name, (kind, space) in devices.items():
        machine.file(f"sys/bus/pci/devices/{name}/class", f"{kind}\n")
        machine.file(f"sys/bus/pci/devices/{name}/config").write_bytes(space)
    machine.file("sys/bus/pci/devices/0000:18:00.0/infiniband/mlx5_0/node_guid")
    cpu = "sys/devices/system/cpu"
    for number in (0, 1):
        machine.file(f"{cpu}/cpufreq/policy{number}/scaling_governor", "powersave\n")
        for state, latency in enumerate((0, 1, 2, 290)):  # POLL, C1, C1E, C6
            machine.file(f"{cpu}/cpu{number}/cpuidle/state{state}/latency", f"{latency}\n")
            machine.file(f"{cpu}/cpu{number}/cpuidle/state{state}/disable", "0\n")
    machine.file("proc/sys/kernel/numa_balancing", "1\n")
    machine.file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    return machine


def test_a_server_as_it_comes_is_tuned_once_and_reports_what_was_changed(node: Machine) -> None:
    due = [
        "governor performance on 2 policies",
        "no idle state over 10 µs (2 are on)",
        "bridge 0000:15:01.0: access control services off",
        "adapter 0000:18:00.0: reads of 4096 bytes, relaxed ordering",
        "pages stay on their NUMA node",
        "transparent huge pages: always",
    ]
    wrong = node.call("tuning", ASKED | {"state": "verified"})
    assert wrong["differences"] == [f"not {each}" for each in due]
    assert node.call("tuning", ASKED, check=True)["changes"] == due

    assert node.call("tuning", ASKED)["changes"] == due

    def register(device: str, at: int) -> int:
        space = (node.root / f"sys/bus/pci/devices/{device}/config").read_bytes()
        assert len(space) == 4096
        return int.from_bytes(space[at : at + 2], "little")

    assert register("0000:15:01.0", ACS_AT + 6) == 0
    assert register("0000:18:00.0", EXPRESS_AT + 8) == 0x5936  # NVIDIA's own 68.w=5936
    assert register("0000:1b:00.0", EXPRESS_AT + 8) == 0x2936
    states = node.root / "sys/devices/system/cpu/cpu1/cpuidle"
    assert [(states / f"state{n}/disable").read_text()[0] for n in range(4)] == list("0001")


def test_nothing_is_due_on_a_machine_that_has_none_of_it(machine: Machine) -> None:
    requested = ASKED | {"transparent_hugepages": ""}
    assert machine.call("tuning", requested | {"state": "verified"})["failed"] is False
    assert machine.call("tuning", requested)["changes"] == []


def test_what_is_not_requested_is_left_alone(node: Machine) -> None:
    assert node.call("tuning", {"numa_balancing": True})["changes"] == [
        "pages stay on their NUMA node"
    ]


def test_a_register_that_the_kernel_keeps_locked_reports_why(
    node: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from running import module_util  # noqa: PLC0415  # next to this file

    path = module_util("tuning").Path
    opened = path.open

    def locked(self: Any, mode: str = "r", **how: Any) -> Any:
        if mode == "r+b":
            raise PermissionError(1, "Operation not permitted")
        return opened(self, mode, **how)

    monkeypatch.setattr(path, "open", locked)
    refused = node.call("tuning", {"pcie": True})
    assert "Operation not permitted; under secure boot the kernel keeps it locked" in refused["msg"]
