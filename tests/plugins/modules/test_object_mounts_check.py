"""A bucket that isn't mounted as requested is reported, the others too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_machine import Machine


@pytest.mark.parametrize(
    ("mounted", "unit", "message"),
    [
        ("fuse.gcsfuse ro,nosuid", "", ""),
        ("fuse rw", "", "mounted rw, not ro"),
        ("ext4 ro", "", "not mounted, but a file system of type ext4"),
        ("", "", "not mounted"),
        ("fuse ro", "Environment=AWS_SECRET_ACCESS_KEY=x", "a key is in object-data.service"),
    ],
)
def test_a_mount_is_as_wanted_or_what_is_wrong_is_reported(
    machine: Machine, mounted: str, unit: str, message: str
) -> None:
    path = machine.root
    machine.file("proc/self/mounts", mounted and f"bucket {path} {mounted} 0 0\n")
    machine.tool("systemctl", f"[ $1 != show ] || echo '{unit}'")
    answer = check(machine, path)
    assert answer.get("msg", "").startswith(message and f"{path}: {message}")
    assert answer["failed"] == bool(message)


def test_a_mount_that_does_not_list_or_run_reports_it(machine: Machine) -> None:
    gone = machine.root / "gone"
    machine.file("proc/self/mounts", f"bucket {gone} fuse ro 0 0\n")
    machine.tool("systemctl", "true")
    assert "may not read the bucket" in check(machine, gone)["msg"]
    machine.tool("systemctl", "exit 3")
    machine.tool("journalctl", "echo 403 Forbidden")
    assert "object-data.service isn't running: 403 Forbidden" in check(machine, gone)["msg"]


def check(machine: Machine, path: Path) -> dict[str, Any]:
    """Check one mount that is to be read-only."""
    mounts = [{"name": "data", "path": str(path), "read_only": True}]
    return machine.call("object_mounts_check", {"mounts": mounts, "seconds": 5})
