"""A repository is read, and nothing of it is run or trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.operations.gitops.git import Repository

from .git_server import Author, GitServer, git


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.org/ops/specs.git",
        "ssh://git@git.example.org:2222/ops/specs.git",
        "git@git.example.org:ops/specs.git",
        "/srv/git/specs.git",
        "http://127.0.0.1:8080/specs.git",
    ],
)
def test_authenticated_ways_are_taken(url: str, tmp_path: Path) -> None:
    Repository(url, "main", tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "http://git.example.org/specs.git",
        "git://git.example.org/specs.git",
        "ext::sh -c touch% /tmp/made",
        "ext::false",
        "--upload-pack=touch",
        "https://ada:secret@git.example.org/specs.git",
        "https://token@git.example.org/specs.git",
        "https://[::1/specs.git",
        "specs",
        "",
    ],
)
def test_other_ways_are_refused_and_no_credential_is_repeated(url: str, tmp_path: Path) -> None:
    with pytest.raises(LifecycleError) as error:
        Repository(url, "main", tmp_path)
    (found,) = error.value.diagnostics
    assert (found.code, error.value.exit_code) == ("GC1130", Exit.USAGE)
    assert "secret" not in found.summary + found.detail + found.hint


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "", "/a", "a.lock", "a/", "a@{1}"])
def test_what_is_no_name_of_a_branch_is_refused(branch: str, tmp_path: Path) -> None:
    with pytest.raises(LifecycleError):
        Repository("/srv/specs.git", branch, tmp_path)


def test_the_files_of_a_commit_are_there_and_no_others(server: GitServer, tmp_path: Path) -> None:
    author = Author(server, tmp_path / "clone")
    repository = Repository(server.url, "main", tmp_path / "copy")
    author.merge({"specs/a.yaml": "a", "specs/b.yaml": "b"})
    repository.tree(repository.fetch().commit)
    commit = author.merge({"specs/a.yaml": None, "specs/b.yaml": "bb"}, "drop a")
    head = repository.fetch()
    tree = repository.tree(head.commit)
    assert head == (commit, "drop a")
    assert [path.name for path in (tree / "specs").iterdir()] == ["b.yaml"]
    assert (tree / "specs" / "b.yaml").read_text() == "bb"


def test_a_rewritten_branch_is_followed(server: GitServer, tmp_path: Path) -> None:
    author = Author(server, tmp_path / "clone")
    repository = Repository(server.url, "main", tmp_path / "copy")
    first = author.merge({"specs/a.yaml": "a"})
    author.merge({"specs/a.yaml": "bad"})
    repository.fetch()
    git("push", "--quiet", "--force", "origin", f"{first}:main", at=author.folder)
    assert repository.fetch().commit == first


def test_a_link_that_leads_out_becomes_a_plain_file(server: GitServer, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("password: hunter2")
    author = Author(server, tmp_path / "clone")
    (author.folder / "specs").mkdir()
    (author.folder / "specs" / "a.yaml").symlink_to(tmp_path / "secret.yaml")
    author.merge({})
    repository = Repository(server.url, "main", tmp_path / "copy")
    found = repository.tree(repository.fetch().commit) / "specs" / "a.yaml"
    assert not found.is_symlink()
    assert "hunter2" not in found.read_text()


def test_no_hook_runs(server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[core]\n\thooksPath = {hooks}\n")
    Author(server, tmp_path / "clone").merge({"specs/a.yaml": "a"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    repository = Repository(server.url, "main", tmp_path / "copy")
    repository.tree(repository.fetch().commit)
    assert not (tmp_path / "ran").exists()


def test_a_branch_that_is_not_there_is_reported_with_gits_message(
    server: GitServer, tmp_path: Path
) -> None:
    Author(server, tmp_path / "clone").merge({"specs/a.yaml": "a"})
    with pytest.raises(LifecycleError) as error:
        Repository(server.url, "prod", tmp_path / "copy").fetch()
    (found,) = error.value.diagnostics
    assert found.code == "GC1100"
    assert "prod" in found.detail
