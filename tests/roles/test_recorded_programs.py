"""The programs of storage roles, asked about recorded machines: good ones and others.

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
GPFS: dict[str, Any] = {
    "cluster": "storage.example.edu", "contacts": [], "node": "node01", "accepted": True,
    "settings": {"autoload": "yes", "pagepool": "17179869184"},
    "mounts": [{"filesystem": "fs1", "path": "/gpfs/fs1"}],
}  # fmt: skip
PROGRAMS = {"gpfs_client": ("gpfs-state.py", GPFS)}
"""Role -> its program and what it is asked for."""


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
    for name in (path.name for path in played.iterdir()):
        (tools / name).write_text(player)
        (tools / name).chmod(0o755)
    for name in ("systemctl", "stat"):  # the node's own, not what is asked here
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    libexec = tmp_path / "libexec"
    libexec.mkdir()
    for folder in (role,):
        for path in (ROOT / "roles" / folder / "files/libexec").iterdir():
            if path.is_file():
                (libexec / path.name).write_bytes(path.read_bytes())
    return subprocess.run(
        [sys.executable, str(libexec / program), verb],
        input=json.dumps(expected),
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


CASES = [
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
