"""How CLI tests run the command: in this process, or as a person's shell would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gcluster.cli.app import app
from gcluster.cli.commands import VERBS

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}}
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 4}
scheduler: {type: slurm}
"""

Run = Callable[..., Any]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Return the path of a small valid spec, alone in its folder."""
    path = tmp_path / "cluster.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give gcluster folders of its own, so that a test sees no cluster of this machine."""
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    return tmp_path


@pytest.fixture
def run(places: Path) -> Run:
    """Run the command line in this process; the result has exit_code, stdout and stderr."""
    del places

    def invoke(*arguments: str, stdin: str | None = None) -> Any:
        return CliRunner().invoke(app, list(arguments), input=stdin, prog_name="gcluster")

    return invoke


@pytest.fixture
def shell(places: Path) -> Run:
    """Run the installed script in a process of its own."""
    del places
    script = str(Path(sys.executable).with_name("gcluster"))

    def invoke(*arguments: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [script, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            env={**os.environ, **env},
            timeout=120,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return invoke


@pytest.fixture
def put_doubles(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put doubles in place of functions of a lifecycle module: a verb is tested by its use of it.

    A verb holds what it imports by name, so the name is replaced in every verb that has it.
    """
    verbs = [import_module(verb.module, "gcluster.cli") for verb in VERBS]

    users: dict[tuple[str, str], list[Any]] = {}

    def put(module: str, **doubles: Any) -> None:
        real = import_module(f"gcluster.lifecycle.{module}")
        for name, double in doubles.items():
            if (module, name) not in users:
                original = getattr(real, name)
                users[module, name] = [v for v in verbs if getattr(v, name, None) is original]
            assert users[module, name], f"no verb imports {name} of {module}"
            for each in users[module, name]:
                monkeypatch.setattr(each, name, double)

    return put
