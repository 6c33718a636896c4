"""A node of a test: recordings answer for its tools, and its files lie in a folder.

The scenarios under molecule/ play the same recordings on nodes; here they need none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from running import PLAYER, ROOT, put_program, recorded_tools, run_module


class Machine:
    """The root of a node's files, and a folder with its tools."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._tools = folder / "node", folder / "tools"
        self.root.mkdir()
        self._tools.mkdir()
        monkeypatch.setenv("GCLUSTER_NODE_ROOT", str(self.root))
        monkeypatch.setenv("PATH", f"{self._tools}:{os.environ['PATH']}")
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        self.tool("pgrep", "exit 1")
        self.tool("systemctl", "[ $1 != is-failed ]")

    def tool(self, name: str, script: str) -> None:
        """Let a shell script answer for a tool."""
        put_program(self._tools / name, f"#!/bin/sh\n{script}\n")

    def file(self, path: str, text: str = "") -> Path:
        """Write a file of the node."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def play(self, role: str, case: str) -> None:
        """Let the recordings of a role's case answer, and its good ones for other tools."""
        recordings = ROOT / "molecule" / role / "recordings"
        player = PLAYER.replace("/usr/local/lib/recordings", str(recordings))
        player = player.replace('(RECORDINGS / "case").read_text().strip()', repr(case))
        for path in recorded_tools(role):
            put_program(self._tools / path.name, player)

    def call(
        self, module: str, requested: Mapping[str, Any], *, check: bool = False, diff: bool = False
    ) -> dict[str, Any]:
        """Run a module; return its result, in which `failed` is always there."""
        return {"failed": False, **run_module(module, requested, check=check, diff=diff)}
