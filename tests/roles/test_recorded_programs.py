"""The programs of fabric and storage roles, asked about recorded machines: good ones and others.

The scenarios under molecule/ play the same recordings on nodes; here they need none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLAYER = (ROOT / ".config/molecule/doubles/play-recording").read_text()
LEAVES = [f"*-leaf{rail}:*" for rail in range(1, 9)]
INFINIBAND: dict[str, Any] = {
    "devices": [], "rails": 8, "gbps": 400, "leaves": LEAVES, "partition_keys": ["0x8001"],
    "ipoib": {}, "subnet_manager": "opensm",
}  # fmt: skip
ROCE: dict[str, Any] = {
    "devices": [], "rails": 4, "gbps": 400, "managed": True, "mtu": 9000, "priority": 3,
    "dscp": 26, "congestion_dscp": 48, "ring": 8192,
}  # fmt: skip
GPFS: dict[str, Any] = {
    "cluster": "storage.example.edu", "contacts": [], "node": "node01", "accepted": True,
    "settings": {"autoload": "yes", "pagepool": "17179869184"},
    "mounts": [{"filesystem": "fs1", "path": "/gpfs/fs1"}],
}  # fmt: skip


PROGRAMS = {
    "infiniband": ("infiniband-state", INFINIBAND),
    "roce": ("roce-state", ROCE),
    "gpfs_client": ("gpfs-state", GPFS),
}
"""Role -> its program and what it is asked for."""


def kernel(root: Path) -> Path:
    """Make what sysfs says of InfiniBand's ports and RoCE's interfaces."""
    for rail in (0, 3, 4, 5, 6, 9, 10, 11):
        keys = root / f"class/infiniband/mlx5_{rail}/ports/1/pkeys"
        keys.mkdir(parents=True)
        (keys / "0").write_text("0x8001\n")
    for rail in range(4):
        device, net = root / f"class/infiniband/mlx5_{rail}", root / f"class/net/rail{rail}"
        (device / f"device/net/rail{rail}").mkdir(parents=True)
        files = {
            device / "tc/1/traffic_class": "Global tclass=106",
            net / "mtu": "9000",
            net / "ecn/roce_np/enable/3": "1",
            net / "ecn/roce_rp/enable/3": "1",
            net / "ecn/roce_np/cnp_dscp": "48",
            net / "ecn/roce_np/cnp_802p_prio": "6",
        }
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
    return root


def asked(
    tmp_path: Path, role: str, case: str, verb: str = "verify"
) -> subprocess.CompletedProcess[str]:
    """Run a role's program where the recordings of a case answer for the machine."""
    program, expected = PROGRAMS[role]
    played, tools = tmp_path / "recordings", tmp_path / "bin"
    tools.mkdir()
    played.symlink_to(ROOT / "molecule" / role / "recordings")
    player = PLAYER.replace("/usr/local/lib/recordings", str(played))
    player = player.replace('(RECORDINGS / "case").read_text().strip()', repr(case))
    for name in (path.name for path in (played / "good").iterdir()):
        (tools / name).write_text(player)
        (tools / name).chmod(0o755)
    for name in ("systemctl", "stat"):  # the node's own, not what is asked here
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    sysfs = kernel(tmp_path / "sys")
    libexec = tmp_path / "libexec"
    libexec.mkdir()
    for folder in ("ofed", "package_sources", role):
        for path in (ROOT / "roles" / folder / "files/libexec").iterdir():
            if path.is_file():
                (libexec / path.name).write_bytes(path.read_bytes())
    return subprocess.run(
        [sys.executable, str(libexec / program), verb],
        input=json.dumps(expected),
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "GCLUSTER_SYS": str(sysfs),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


CASES = [
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
    ("gpfs_client", "other-cluster", "the node is in old.example.edu"),
    ("gpfs_client", "arbitrating", "GPFS is arbitrating here"),
    ("gpfs_client", "not-mounted", "/gpfs/fs1 is not mounted"),
    ("gpfs_client", "small-pagepool", "GPFS runs with pagepool 1073741824"),
]  # fmt: skip


@pytest.mark.parametrize(("role", "case", "told"), CASES)
def test_verify_names_what_is_wrong_with_a_recorded_machine(
    tmp_path: Path, role: str, case: str, told: str
) -> None:
    run = asked(tmp_path, role, case)
    assert run.returncode == 1, run.stdout + run.stderr
    assert told in run.stderr


@pytest.mark.parametrize("role", PROGRAMS)
def test_a_recorded_machine_that_is_as_asked_passes(tmp_path: Path, role: str) -> None:
    run = asked(tmp_path, role, "good")
    assert (run.returncode, run.stderr) == (0, "")


def test_adapters_with_different_firmware_are_told_and_no_failure(tmp_path: Path) -> None:
    run = asked(tmp_path, "infiniband", "mixed-firmware")
    assert run.returncode == 0
    assert "adapters MT4129 have different firmware" in run.stdout
    assert "28.36.1010 on mlx5_3" in run.stdout


def test_adapters_that_forgot_everything_are_set_by_name_and_value(tmp_path: Path) -> None:
    run = asked(tmp_path, "roce", "fresh", "plan")
    assert run.returncode == 0
    told = run.stdout.splitlines()
    assert "rail0 sorts packets by DSCP" in told
    assert "rail3 keeps priority 3 lossless" in told
    assert len(told) == 4 * 4  # trust, PFC, rings and pause of four rails
