"""`gcluster init`: a spec to start from, which is valid and overwrites nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("kind", ["local", "bare-metal", "ssh-fleet"])
def test_what_init_writes_is_valid_and_names_its_schema(
    run: Callable[..., Any], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "cluster.yaml"
    assert run("init", str(path), "--kind", kind, "--name", "lab-1").exit_code == 0
    text = path.read_text(encoding="utf-8")
    assert "# yaml-language-server: $schema=" in text
    done = run("validate", str(path))
    assert (done.exit_code, done.stdout) == (0, "ok: lab-1: 2 pools, 5 hosts\n")


@pytest.mark.parametrize("kind", ["local", "bare-metal", "ssh-fleet"])
def test_the_lines_that_are_commented_out_are_valid_too(
    run: Callable[..., Any], tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "cluster.yaml"
    run("init", str(path), "--kind", kind)
    text = path.read_text(encoding="utf-8")
    at = text.index("# users:")
    path.write_text(text[:at] + text[at:].replace("# ", "", 1).replace("\n# ", "\n"))
    done = run("validate", str(path))
    assert done.exit_code == 0, done.stdout


def test_a_file_that_exists_is_left_as_it_is(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("mine", encoding="utf-8")
    done = run("init", str(path))
    assert done.exit_code == 1
    assert "exists already" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_name_that_no_cluster_can_have_writes_nothing(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    done = run("init", str(tmp_path / "c.yaml"), "--name", "Not A Name")
    assert done.exit_code == 64
    assert not (tmp_path / "c.yaml").exists()


def test_the_next_commands_are_reported(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    done = run("init", str(path))
    for command in (f"gcluster validate {path}", "gcluster doctor", f"gcluster up {path}"):
        assert command in done.stdout


def test_a_folder_that_does_not_exist_is_reported(run: Callable[..., Any], tmp_path: Path) -> None:
    done = run("init", str(tmp_path / "no" / "c.yaml"))
    assert done.exit_code == 1
    assert "No such file or directory" in done.stderr
