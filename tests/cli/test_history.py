"""`gcluster history` and `gcluster show`: what was done to a cluster, by whom and how it ended."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.state.audit.artifacts import store_artifacts

Run = Callable[..., Any]


@pytest.fixture
def made(run: Run, spec: Path) -> str:
    """Bring the simulated cluster up; return its spec."""
    assert run("up", str(spec), "--yes").exit_code == 0
    return str(spec)


def _runs(run: Run, spec: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = json.loads(run("history", spec, "--format", "json").stdout)
    return answer


def test_each_run_is_a_line_with_who_what_and_how_it_ended(run: Run, made: str) -> None:
    assert run("down", made, "--yes").exit_code == 0
    lines = run("history", made).stdout.splitlines()
    assert len(lines) == 2
    assert [" up " in lines[0], " down " in lines[1]] == [True, True]
    assert all("@" in line and " ok " in line for line in lines)


def test_a_run_is_reported_event_by_event(run: Run, made: str) -> None:
    (only,) = _runs(run, made)
    answer = run("show", made, only["id"][:12])
    assert answer.exit_code == 0
    kinds = [line.split()[1] for line in answer.stdout.splitlines()[2:] if line[2:4].isdigit()]
    assert kinds[0] == "RunStarted"
    assert kinds[-1] == "RunFinished"
    assert "IntentsStored" in kinds
    events = json.loads(run("show", made, only["id"], "--format", "json").stdout)["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_a_run_that_never_was_is_refused_with_what_lists_them(run: Run, made: str) -> None:
    done = run("show", made, "nothing")
    assert done.exit_code == 64
    assert "gcluster history demo" in done.stderr


def test_logs_of_a_run_are_written_where_it_left_some(run: Run, made: str, tmp_path: Path) -> None:
    (only,) = _runs(run, made)
    target = tmp_path / "logs.tar.gz"
    none = run("show", made, only["id"], "--artifacts", str(target))
    assert none.exit_code == 1
    assert "has left no logs" in none.stderr

    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "stdout").write_text("PLAY RECAP")
    store_artifacts(open_cluster(made, running=True).store, only["id"], tmp_path / "left")

    assert run("show", made, only["id"], "--artifacts", str(target)).exit_code == 0
    with tarfile.open(target) as archive:
        assert archive.getnames() == ["stdout"]
