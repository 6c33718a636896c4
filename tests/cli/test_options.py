"""Shell completion: verbs, spec files, known clusters; and the script that a shell loads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.cli.options import complete_spec, complete_target


@pytest.fixture
def here(places: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a folder with specs, other files and one known cluster."""
    folder = places / "here"
    (folder / "specs").mkdir(parents=True)
    for name in ("cluster.yaml", "other.yml", "notes.txt", ".hidden.yaml", "specs/a.yaml"):
        (folder / name).touch()
    index = places / "xdg_data_home" / "gcluster" / "clusters"
    index.mkdir(parents=True)
    (index / "1.json").write_text(json.dumps({"name": "cluster-7"}))
    (index / "2.json").write_text("{half")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("incomplete", "offered"),
    [
        ("", ["cluster.yaml", "other.yml", "specs/"]),
        ("o", ["other.yml"]),
        ("specs/", ["specs/a.yaml"]),
        (".h", [".hidden.yaml"]),
        ("nowhere/", []),
    ],
)
def test_spec_files_and_folders_are_offered(
    here: Path, incomplete: str, offered: list[str]
) -> None:
    del here
    assert complete_spec(incomplete) == offered


def test_known_clusters_are_offered_with_the_files(here: Path) -> None:
    del here
    assert complete_target("cl") == ["cluster-7", "cluster.yaml"]


def _completed(shell: Callable[..., Any], words: str) -> list[str]:
    number = len(words.split(" ")) - 1
    done = shell(
        _GCLUSTER_COMPLETE="complete_bash",
        COMP_WORDS=f"gcluster {words}",
        COMP_CWORD=str(number + 1),
    )
    return [str(line) for line in done.stdout.split()]


def test_the_shell_completes_verbs(shell: Callable[..., Any]) -> None:
    assert _completed(shell, "sta") == ["state", "status"]


def test_the_shell_completes_targets(shell: Callable[..., Any], here: Path) -> None:
    del here
    assert _completed(shell, "status cl") == ["cluster-7", "cluster.yaml"]


def test_the_shell_completes_options(shell: Callable[..., Any]) -> None:
    assert _completed(shell, "plan x --det") == ["--detailed-exitcode"]


def test_the_script_for_a_shell_can_be_shown(shell: Callable[..., Any]) -> None:
    done = shell("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert "_GCLUSTER_COMPLETE=complete_bash" in done.stdout
