"""Entries that an image brings for a repository of ours: a second key for it stops apt."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import running

REPOSITORIES = running.module_util("repositories")
MODULE = running.module("package_repositories")
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/"
OURS = {(CUDA, "/")}
SOURCE = f"""\
# Written by gcluster. Changes made here are lost; change the spec.
Types: deb
URIs: {CUDA}
Suites: /
Architectures: amd64
Signed-By: /etc/apt/keyrings/gcluster-nvidia-cuda.gpg
"""
KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"
LIST = f"""\
# added by cuda-keyring
deb [signed-by={KEYRING}] {CUDA} /
deb http://archive.ubuntu.com/ubuntu noble main
"""
PARAGRAPHS = f"""\
Types: deb
URIs: http://archive.ubuntu.com/ubuntu
Suites: noble noble-updates
Components: main
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg

Types: deb
URIs: {CUDA.rstrip("/")}
Suites: /
Signed-By: {KEYRING}
"""
SHARED = f"""\
Types: deb
URIs: {CUDA} https://packages.example.com/flat/
Suites: /
Signed-By: {KEYRING}
"""
FILES = {
    "cuda-ubuntu2404-x86_64.list": LIST,
    "cuda.sources": PARAGRAPHS,
    "shared.sources": SHARED,
}
needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")


def read_by_apt(root: Path) -> tuple[int, set[str], str]:
    """Return how a real apt ends that reads the sources below a folder, and their URLs."""
    for name in ("state/lists/partial", "cache/archives/partial", "etc/preferences.d"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    (root / "none.conf").touch()
    options = {
        "Dir::Etc": root / "etc",
        "Dir::Etc::SourceList": root / "etc/sources.list",
        "Dir::Etc::SourceParts": root / "etc/sources.list.d",
        "Dir::State": root / "state",
        "Dir::State::status": root / "status",
        "Dir::Cache": root / "cache",
    }
    argv = ["apt-get", *(f"--option={name}={value}" for name, value in options.items())]
    done = subprocess.run(
        [*argv, "indextargets", "--no-release-info", "--format", "$(REPO_URI)"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", "APT_CONFIG": str(root / "none.conf")},
    )
    return done.returncode, set(done.stdout.split()), done.stderr


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of apt of a node that has our source."""
    parts = tmp_path / "etc/sources.list.d"
    parts.mkdir(parents=True)
    (parts / "gcluster-nvidia-cuda.sources").write_text(SOURCE)
    monkeypatch.setattr(MODULE, "APT_SOURCES", parts)
    monkeypatch.setattr(MODULE, "APT_LIST", tmp_path / "etc/sources.list")
    return tmp_path


@needs_apt
@pytest.mark.parametrize("name", sorted(FILES))
def test_a_real_apt_that_two_keys_stop_reads_ours_alone_afterwards(node: Path, name: str) -> None:
    path = node / "etc/sources.list.d" / name
    path.write_text(FILES[name])
    code, _, error = read_by_apt(node)
    assert code != 0
    assert "Conflicting values set for option Signed-By" in error

    changed = MODULE.turn_off_others([], {"nvidia-cuda"}, act=True)
    code, urls, error = read_by_apt(node)
    assert (code, error) == (0, "")
    assert [line.partition(":")[0] for line in changed] == [f"changed {path}"]
    others = {"http://archive.ubuntu.com/ubuntu/", "https://packages.example.com/flat/"}
    assert urls - {CUDA} == {url for url in others if url.rstrip("/") in FILES[name]}
    assert CUDA in urls
    assert MODULE.turn_off_others([], {"nvidia-cuda"}, act=True) == []


@pytest.mark.parametrize("name", sorted(FILES))
def test_what_was_turned_off_comes_back_with_the_last_source_of_ours(name: str) -> None:
    suffix = Path(name).suffix
    off = REPOSITORIES.without_ours(FILES[name], suffix, OURS)
    assert off != FILES[name]
    assert REPOSITORIES.without_ours(off, suffix, set()) == FILES[name]


def test_a_refused_repository_turns_nothing_off(node: Path) -> None:
    (node / "etc/sources.list.d/gcluster-nvidia-cuda.sources").unlink()
    path = node / "etc/sources.list.d/cuda.list"
    path.write_text(LIST)
    assert MODULE.turn_off_others([], None, act=True) == []
    assert path.read_text() == LIST


def test_check_mode_reports_it_and_leaves_the_files(node: Path) -> None:
    path = node / "etc/sources.list"
    path.write_text(LIST)
    assert MODULE.turn_off_others([], {"nvidia-cuda"}, act=False)
    assert path.read_text() == LIST
