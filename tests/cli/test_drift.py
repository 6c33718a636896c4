"""`gcluster drift`: clean or not, in every form, with the exit codes of plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.stacks.simulated import fleet

Run = Callable[..., Any]


@pytest.fixture
def made(run: Run, spec: Path) -> str:
    """Bring the simulated cluster up; return its spec."""
    assert run("up", str(spec), "--yes").exit_code == 0
    return str(spec)


@pytest.fixture
def drifted(made: str) -> str:
    """Delete two machines at the site; return the spec."""
    (site,) = open_sites(open_cluster(made, running=True))
    cloud = fleet.cloud(site.context)
    cloud.delete([cloud.list()[node].id for node in ("gpu002", "gpu003")])
    return made


def test_a_cluster_that_is_as_up_left_it_reports_it(run: Run, made: str) -> None:
    done = run("drift", made, "--detailed-exitcode")
    assert done.exit_code == 0
    assert done.stdout.startswith("demo is as up left it   5 nodes looked at")


def test_drift_is_reported_by_plane_and_with_what_fixes_it(run: Run, drifted: str) -> None:
    done = run("drift", drifted)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("demo has drifted: 2 differences")
    assert lines[1:4] == [
        "sites",
        "  ~ lab: node gpu002: it does not exist (was as the spec says)",
        "  ~ lab: node gpu003: it does not exist (was as the spec says)",
    ]
    assert lines[-1] == "fix it with: gcluster drift demo --fix"


@pytest.mark.parametrize("fmt", ["text", "json", "markdown"])
def test_the_detailed_exit_code_shows_of_drift_in_every_form(
    run: Run, drifted: str, fmt: str
) -> None:
    assert run("drift", drifted, "--detailed-exitcode", "--format", fmt).exit_code == 3


def test_json_has_each_difference_as_a_value(run: Run, drifted: str) -> None:
    answer = json.loads(run("drift", drifted, "--format", "json").stdout)
    assert [(d["plane"], d["where"], d["name"], d["fixable"]) for d in answer["drifts"]] == [
        ("cloud", "lab", "gpu002", True),
        ("cloud", "lab", "gpu003", True),
    ]


def test_the_comment_is_the_same_bytes_for_the_same_drift(run: Run, drifted: str) -> None:
    comments = {run("drift", drifted, "--format", "markdown").stdout for _ in range(2)}
    (comment,) = comments
    assert comment.startswith("<!-- gcluster drift: demo -->\n### gcluster drift: `demo`\n")
    assert "- lab: node gpu002: it does not exist (was as the spec says)" in comment


def test_a_fix_recreates_them_and_reports_what_was_fixed(run: Run, drifted: str) -> None:
    done = run("drift", drifted, "--fix", "--yes")
    assert done.exit_code == 0
    assert "✔ lab: node gpu002" in done.stdout
    assert run("drift", drifted, "--detailed-exitcode").exit_code == 0


def test_without_a_confirmation_nothing_is_fixed(run: Run, drifted: str) -> None:
    done = run("drift", drifted, "--fix")
    assert done.exit_code == 4
    assert run("drift", drifted, "--detailed-exitcode").exit_code == 3


def test_a_cluster_that_never_was_is_refused_as_text(run: Run, spec: Path) -> None:
    done = run("drift", str(spec))
    assert done.exit_code == 1
    assert "GC1102" in done.stderr
