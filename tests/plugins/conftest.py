"""What tests of modules share: a folder of programs that come first, and files of who runs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # running.py


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose programs are found before the machine's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let modules write files of the user who runs the tests, who need not be root."""
    from running import module_util  # noqa: PLC0415  # next to this file

    monkeypatch.setattr(module_util("files"), "ROOT", (os.getuid(), os.getgid()))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_files: None) -> Any:
    """Return a node whose tools and files a test chooses (recorded_machine.Machine)."""
    from recorded_machine import Machine  # noqa: PLC0415  # next to this file

    del own_files
    return Machine(tmp_path, monkeypatch)
