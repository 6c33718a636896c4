"""Which number an AMD GPU gets in /dev/gcluster, on machines whose PCI devices are files here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/amd_gpu/files/libexec/amd-gpu-number.sh"
ASPEED, MI300X, MI250X, NVME, RADEON = (
    ("0x1a03", "0x030000"),
    ("0x1002", "0x120000"),
    ("0x1002", "0x038000"),
    ("0x144d", "0x010802"),
    ("0x1002", "0x030000"),
)
"""Vendor and class as in lspci -n: a BMC's screen, accelerators, a disk, a desktop's card."""


def number(folder: Path, devices: dict[str, tuple[str, str]], of: str) -> str:
    """Return udev's properties of a device; "" when it is none of the GPUs."""
    for address, (vendor, kind) in devices.items():
        (folder / address).mkdir()
        (folder / address / "vendor").write_text(f"{vendor}\n")
        (folder / address / "class").write_text(f"{kind}\n")
    done = subprocess.run(
        ["sh", PROGRAM, of],
        env={"GCLUSTER_PCI_DEVICES": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("gpu", [MI300X, MI250X])
def test_gpus_are_counted_in_pci_order_whatever_is_between(
    tmp_path: Path, gpu: tuple[str, str]
) -> None:
    devices = {
        "0000:e5:00.0": gpu,
        "0000:05:00.0": gpu,
        "0000:0a:00.0": ASPEED,
        "0000:26:00.0": RADEON,
        "0000:a6:00.0": gpu,
        "0001:01:00.0": gpu,
        "0000:c1:00.0": NVME,
    }
    assert number(tmp_path, devices, "0000:a6:00.0") == "1"


def test_a_display_is_none_of_them(tmp_path: Path) -> None:
    assert number(tmp_path, {"0000:05:00.0": MI300X, "0000:26:00.0": RADEON}, "0000:26:00.0") == ""
