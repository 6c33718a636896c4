"""`gcluster reconcile`, `expire` and `init --ci` as a person and a unit use them."""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.cluster.places import data_home

Run = Callable[..., Any]

SPEC = """\
apiVersion: gcluster/v1
name: trial
state: file://{state}
sites: {{lab: {{provider: simulated}}}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: sim.h100x8, count: {count}}}
scheduler: {{type: slurm}}
{more}"""


class Repo:
    """A repository of one spec, on this machine."""

    def __init__(self, folder: Path) -> None:
        """Make it, and merge the spec."""
        self.top = folder / "repo"
        self.state = folder / "state"
        self.spec = self.top / "specs" / "trial.yaml"
        self.spec.parent.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")
        self.merge()

    def merge(self, *, count: int = 2, more: str = "") -> None:
        """Merge the spec with so many nodes."""
        self.spec.write_text(SPEC.format(state=self.state, count=count, more=more))
        self._git("add", "--all")
        self._git(
            "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", f"to {count}"
        )

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self.top), *arguments], check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    for name in ("DATA", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return Repo(tmp_path)


def _lines(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_round_is_reported_line_by_line_and_status_shows_it_again(run: Run, repo: Repo) -> None:
    done = run("reconcile", "--repo", str(repo.top), "--once")
    assert done.exit_code == 0
    assert [line["what"] for line in _lines(done)] == [
        "repository", "stage", "stage", "cluster", "round",
    ]  # fmt: skip
    text = run("reconcile", "status")
    assert text.exit_code == 0
    assert "trial  synced" in text.stdout
    (record,) = json.loads(run("reconcile", "status", "--format", "json").stdout)
    assert record["clusters"]["trial"]["phase"] == "synced"
    one = run("reconcile", "status", str(repo.spec), "--format", "json")
    assert json.loads(one.stdout) == record["clusters"]["trial"]
    status = json.loads(run("status", str(repo.spec), "--format", "json").stdout)
    assert {c["name"]: c["status"] for c in status["conditions"]}["Reconciled"] == "true"


def test_what_is_held_back_is_let_through_once_by_name(run: Run, repo: Repo) -> None:
    repo.merge(count=4)
    run("reconcile", "--repo", str(repo.top), "--once")
    repo.merge(count=1)
    assert run("reconcile", "--repo", str(repo.top), "--once").exit_code == 4
    assert run("reconcile", "status").exit_code == 3
    again = run("reconcile", "--repo", str(repo.top), "--once")
    assert "refused; gcluster reconcile status says why" in _lines(again)[-1]["reason"]
    argv = ("--repo", str(repo.top), "--once", "--allow", "trial/pool:gpu")
    assert run("reconcile", *argv).exit_code == 0, "at once, whatever the pause is"
    assert run("reconcile", "status").exit_code == 0


def test_a_paused_cluster_is_reported_with_a_contact(run: Run, repo: Repo) -> None:
    run("reconcile", "--repo", str(repo.top), "--once")
    assert run("reconcile", "pause", str(repo.spec), "--reason", "firmware").exit_code == 0
    repo.merge(count=3)
    assert run("reconcile", "--repo", str(repo.top), "--once").exit_code == 3
    assert "firmware" in run("reconcile", "status").stdout
    assert run("reconcile", "resume", str(repo.spec)).exit_code == 0
    assert "was not paused" in run("reconcile", "resume", str(repo.spec)).stdout
    assert run("reconcile", "--repo", str(repo.top), "--once").exit_code == 0
    assert run("reconcile", "pause", str(repo.spec), "--reason", " ").exit_code == 64


def test_one_controller_of_a_branch_is_enough(run: Run, repo: Repo) -> None:
    run("reconcile", "--repo", str(repo.top), "--once")
    (folder,) = (data_home() / "reconcile").iterdir()
    with (folder / "running").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = run("reconcile", "--repo", str(repo.top), "--once")
    assert done.exit_code == 6
    assert "GC1135" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--repo", "http://git.example.org/x", "--once"),
        ("--repo", "/x", "--allow", "a/b"),
        ("--repo", "/x", "--once", "--allow", "pool:gpu"),
        ("--repo", "/x", "--interval", "0s"),
        ("--repo", "/x", "--interval", "soon"),
        ("stauts",),
        ("unit", "--repo", "git://git.example.org/x"),
        ("unit", "--repo", "/x", "--interval", "soon"),
        ("unit", "--repo", "/x", "--interval", "0s", "--container"),
        ("unit", "--repo", "/x", "--path", "../other"),
        ("--repo", "/x", "--once", "--path", "specs/../../other"),
    ],
)
def test_wrong_words_are_reported_and_nothing_is_done(
    run: Run, repo: Repo, words: tuple[str, ...]
) -> None:
    done = run("reconcile", *words)
    assert (done.exit_code, done.stdout) == (64, "")
    assert not repo.state.exists()


def test_a_repository_that_is_not_there_is_reported_with_gits_message(run: Run, repo: Repo) -> None:
    done = run("reconcile", "--repo", f"{repo.top}-gone", "--once")
    assert done.exit_code == 1
    (found,) = _lines(done)[0]["diagnostics"]
    assert found["code"] == "GC1100"
    assert "not" in found["detail"]


def test_units_are_printed(run: Run) -> None:
    unit = run("reconcile", "unit", "--repo", "git@git.example.org:ops/clusters.git").stdout
    assert "ExecStart=" in unit
    words = ("--repo", "/srv/specs.git", "--container")
    assert "ENTRYPOINT" in run("reconcile", "unit", *words).stdout


def test_expire_shows_its_result(run: Run, repo: Repo) -> None:
    assert run("expire", str(repo.spec)).stdout == "trial: nothing ends it soon\n"
    run("up", str(repo.spec), "--yes")
    repo.merge(more="budget: {expires: 1m, notice: 30s}\n")
    run("up", str(repo.spec), "--yes")
    repo.merge(more="budget: {expires_on: '2020-01-01', notice: 1h}\n")
    done = run("expire", str(repo.spec), "--format", "json")
    assert done.exit_code == 3
    (looked,) = json.loads(done.stdout)
    assert (looked["state"], looked["kind"]) == ("announced", "expires")
    status = run("status", str(repo.spec)).stdout
    assert "WithinLifetime" in status
    repo.merge()
    assert "withdrawn" in run("expire", str(repo.spec)).stdout


def test_pipelines_are_written_and_what_is_left_to_do_is_reported(run: Run, repo: Repo) -> None:
    done = run("init", str(repo.top), "--ci", "github")
    assert done.exit_code == 0
    assert (repo.top / ".github" / "workflows" / "gcluster-apply.yml").is_file()
    assert 'environment "gcluster"' in done.stdout
    assert run("init", str(repo.top), "--ci", "github").exit_code == 1
    assert run("init", str(repo.top / "specs"), "--ci", "gitlab").exit_code == 64
