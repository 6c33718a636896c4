"""The unit and the container file run the same command, whatever the options hold."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.operations.gitops.unit import container_file, unit_file

OPTIONS = {
    "repo": "https://git.example.org/a%20b/specs.git",
    "branch": "main",
    "path": "my specs/",
    "interval": "5m",
}
WORDS = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]


def test_the_unit_runs_the_command_with_its_options() -> None:
    (line,) = [each for each in unit_file(OPTIONS, "ops").splitlines() if "ExecStart=" in each]
    words = shlex.split(line.removeprefix("ExecStart=").replace("%%", "%"))
    assert words[1:] == ["reconcile", *WORDS]
    assert words[0].endswith("/gcluster")


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "gcluster-reconcile.service"
    unit.write_text(unit_file(OPTIONS, "root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    about = [line for line in done.stderr.splitlines() if "gcluster-reconcile" in line]
    assert about == []


def test_the_container_runs_the_command_with_its_options_without_root() -> None:
    lines = container_file(OPTIONS).splitlines()
    (entry,) = [line for line in lines if line.startswith("ENTRYPOINT ")]
    assert json.loads(entry.removeprefix("ENTRYPOINT ")) == [
        "tini", "--", "gcluster", "reconcile", *WORDS,
    ]  # fmt: skip
    assert "USER 10001" in lines


def test_a_url_with_a_credential_gets_no_unit() -> None:
    with pytest.raises(LifecycleError) as error:
        unit_file({**OPTIONS, "repo": "https://a:b@git.example.org/x"}, "ops")
    assert error.value.diagnostics[0].code == "GC1130"
