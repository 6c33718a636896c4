"""The program of role node_health, as it runs on a node, against recorded machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "roles/node_health/files")]
import recorded  # noqa: E402  # the path comes first
from node_health import main as program  # noqa: E402

Look = Callable[..., dict[str, Any]]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return the arguments that point the program at the recorded machine."""
    return [
        *("--config", str(tmp_path / "node-health.json")),
        *("--state-folder", str(tmp_path / "state")),
        *("--report", str(tmp_path / "report.json")),
        *("--root", str(tmp_path / "root")),
        *("--path", str(tmp_path / "bin")),
    ]


@pytest.fixture
def look(tmp_path: Path, arguments: list[str]) -> Look:
    """Return a function that looks at the recorded machine and returns the report."""

    def run(case: str | None = None, *, files: str = "files.yml", **changes: Any) -> dict[str, Any]:
        recorded.make_machine(tmp_path, case, files)
        recorded.settings(tmp_path, **changes)
        code = program.main([*arguments, "check"])
        report: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
        assert code == (1 if report["verdict"] == "unfit" else 0)
        return report

    return run


@pytest.fixture
def health(tmp_path: Path, arguments: list[str]) -> Callable[..., int]:
    """Return a function that runs a verb of the program."""
    recorded.make_machine(tmp_path)
    recorded.settings(tmp_path)
    return lambda *verb: program.main([*arguments, *verb])


@pytest.fixture
def check(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Return a function that looks at a recorded machine as a scheduler has it: code and line."""

    def run(case: str | None = None, **changes: Any) -> tuple[int, str]:
        recorded.make_machine(tmp_path, case)
        recorded.settings(tmp_path, **changes)
        capsys.readouterr()
        code = program.main([*arguments, "check", "--drain"])
        return code, capsys.readouterr().out.strip()

    return run
