"""From a merge to a certificate on real nodes, and to their end: a git server, a controller, Slurm.

The tests of this file run in order and share one cluster and one repository.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import SPEC, LiveCluster, until

pytestmark = [pytest.mark.local, pytest.mark.reconcile]

_PLACE = Path(__file__).parent.parent / "lifecycle" / "gitops" / "git_server.py"
_FOUND = importlib.util.spec_from_file_location("git_server", _PLACE)
assert _FOUND is not None
assert _FOUND.loader is not None
git_server = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(git_server)


class Followed:
    """A cluster that follows a repository on a server of its own."""

    def __init__(self, live: LiveCluster, folder: Path, server: Any) -> None:
        """Clone the repository; nothing is merged."""
        self.live = live
        self.state = folder / "state"
        self.server = server
        self.author = git_server.Author(server, folder / "clone")
        live.spec = folder / "clone" / "specs" / "cluster.yaml"

    def merge(self, *, nodes: int = 2, more: str = "") -> str:
        """Merge the spec with so many GPU nodes."""
        text = SPEC.format(name=self.live.name, count=nodes)
        return str(
            self.author.merge({"specs/cluster.yaml": f"state: file://{self.state}\n{text}{more}"})
        )

    def round(self, *, expect: int | None = 0) -> list[dict[str, Any]]:
        """Have the controller's round; return what it said."""
        done = self.live.gcluster(
            "reconcile", "--repo", self.server.url, "--path", "specs/", "--once", expect=expect
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def rounds_until(self, holds: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Have rounds until what one says holds: what is due at a time may not be due yet."""
        until(lambda: holds(self.round(expect=None)), 120)

    def certificate(self) -> dict[str, Any]:
        """Return the certificate that the state holds."""
        found: dict[str, Any] = json.loads((self.state / "certificate.json").read_bytes())
        return found


@pytest.fixture(scope="module")
def followed(live: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    """Give a server, a repository and the cluster that will follow it."""
    folder = tmp_path_factory.mktemp("gitops")
    with git_server.GitServer(folder / "server") as server:
        yield Followed(live, folder, server)


def _end(answer: list[dict[str, Any]]) -> str:
    """Return what a round says of the cluster's end; "" where it says nothing of it."""
    return " ".join(line["reason"] for line in answer if line["what"] == "end")


def test_a_merge_becomes_a_cluster_with_a_certificate(followed: Followed) -> None:
    commit = followed.merge()
    answer = followed.round()
    assert {"what": "cluster", "phase": "synced", "commit": commit}.items() <= answer[-2].items()
    certificate = followed.certificate()
    assert certificate["verdict"]["verdict"] == "pass"
    (run,) = followed.live.json("history", followed.live.name)
    assert run["why"] == f"commit {commit}"


def test_a_second_round_touches_no_node(followed: Followed) -> None:
    before = followed.live.stamp_times()
    followed.round()
    assert followed.live.stamp_times() == before


def test_a_bad_merge_changes_nothing_and_reports_it(followed: Followed) -> None:
    nodes, before = followed.live.engine("ps"), followed.live.stamp_times()
    followed.author.merge(
        {"specs/other.yaml": "apiVersion: gcluster/v1\nname: other\npools: {}\n"}, "break it"
    )
    followed.merge(nodes=3)
    result = followed.round(expect=2)
    (answer,) = [line for line in result if line["what"] == "repository"]
    assert {found["file"] for found in answer["diagnostics"]} == {"specs/other.yaml"}
    assert (followed.live.engine("ps"), followed.live.stamp_times()) == (nodes, before)
    followed.author.merge({"specs/other.yaml": None}, "fix it")
    followed.merge()
    followed.round()


def test_a_cluster_whose_time_is_up_stays_while_a_job_runs_and_is_announced(
    followed: Followed,
) -> None:
    live = followed.live
    live.on(
        "head",
        "su ada -c 'cd /tmp && sbatch -N1 --time=30 --output=/dev/null --wrap \"sleep 600\"'",
    )
    until(lambda: "RUNNING" in live.on("head", "squeue --noheader --format=%T"))
    followed.merge(more="budget: {expires: 1m, notice: 5s}\n")
    followed.rounds_until(lambda message: "is removed on" in _end(message))
    assert live.name in live.on("head", "cat /etc/motd.d/90-gcluster-end")
    assert "MAINT" in live.on("head", "scontrol show reservation gcluster_end")
    followed.rounds_until(lambda message: "1 job runs" in _end(message))
    assert len(live.engine("ps")) == 3


def test_up_refuses_a_cluster_that_only_its_last_job_keeps(followed: Followed) -> None:
    output = followed.live.gcluster("up", str(followed.live.spec), "--yes", expect=4)
    assert "GC1141" in output.stderr


def test_a_merge_that_gives_it_more_time_withdraws_the_end(followed: Followed) -> None:
    live = followed.live
    followed.merge(more="budget: {expires: 30d}\n")
    answer = followed.round()
    assert [line["reason"] for line in answer if line["what"] == "end"] == ["nothing ends it soon"]
    assert "gcluster_end" not in live.on("head", "scontrol show reservation")
    assert live.on("head", "ls /etc/motd.d") == ""


def test_nothing_is_left_once_the_job_has_ended_and_the_controller_leaves_it_so(
    followed: Followed, capsys: pytest.CaptureFixture[str]
) -> None:
    live = followed.live
    live.on("head", "scancel --user=ada")
    until(lambda: not live.on("head", "squeue --noheader").strip())
    followed.merge(more="budget: {expires: 1m, notice: 5s}\n")
    followed.rounds_until(
        lambda message: "down" in [line["phase"] for line in message if line["what"] == "cluster"]
    )
    followed.round()
    left = live.left_behind()
    counts = {kind: len(found) for kind, found in left.items()}
    with capsys.disabled():
        sys.stdout.write(f"\nleft behind by {live.name}: {counts}\n")
    assert counts == dict.fromkeys(counts, 0), left
