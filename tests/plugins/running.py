"""Run a module of the collection in this process, as Ansible would on a node."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ansible.module_utils.testing import patch_module_args

PLUGINS = "gcluster.ansible_collections.gcluster.cluster.plugins"
ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
PLAYER = (ROOT / ".config/molecule/doubles/play-recording").read_text()


def module(name: str) -> ModuleType:
    """Return a module of the collection."""
    return importlib.import_module(f"{PLUGINS}.modules.{name}")


def module_util(name: str) -> ModuleType:
    """Return what modules share."""
    return importlib.import_module(f"{PLUGINS}.module_utils.{name}")


def run_module(
    name: str, arguments: Mapping[str, Any], *, check: bool = False, diff: bool = False
) -> dict[str, Any]:
    """Return what a module answers; `failed` is in it where it failed."""
    given = {**arguments, "_ansible_check_mode": check, "_ansible_diff": diff}
    printed = io.StringIO()
    with (
        patch_module_args(given),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        module(name).main()
    answer: dict[str, Any] = json.loads(printed.getvalue())
    return answer


def play_recordings(role: str, case: str, tools: Path) -> None:
    """Have the recordings of a case answer for the machine, as programs in `tools`."""
    recordings = ROOT / "molecule" / role / "recordings"
    player = PLAYER.replace("/usr/local/lib/recordings", str(recordings))
    player = player.replace('(RECORDINGS / "case").read_text().strip()', repr(case))
    tools.mkdir(exist_ok=True)
    for path in recorded_tools(role):
        put_program(tools / path.name, player)


def recorded_tools(role: str) -> list[Path]:
    """Return the recordings of a role's tools, one file a tool."""
    folder = ROOT / "molecule" / role / "recordings"
    return sorted(path for path in folder.iterdir() if path.suffix not in {".yml", ".json"})


def put_program(path: Path, text: str) -> None:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)
