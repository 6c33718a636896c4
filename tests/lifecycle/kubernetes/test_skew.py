"""A version that can't follow the one that runs is refused in the plan, and only where one runs."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.kubernetes.fitness import skew_findings
from gcluster.lifecycle.planning.changes import UpgradeLine
from gcluster.lifecycle.status.observe import Observation

from .spec import hosts_of, spec_of


def findings_of(*steps: tuple[str, str, str], joined: bool = True) -> list[tuple[str, str]]:
    hosts = hosts_of(spec_of())
    stamps = {"head": {"kubernetes.join": "0" * 64}} if joined else {}
    observation = Observation(
        sites=(), existing=hosts, desired=hosts, stamps=stamps, unreachable={}, taken_at=0.0
    )
    lines = [UpgradeLine(what=what, before=before, after=after) for what, before, after in steps]
    return [(found.code, found.summary) for found in skew_findings(lines, observation)]


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ("1.34.4", "1.35.4", ""),
        ("1.34.4", "1.34.9", ""),
        ("1.34.4", "1.35", ""),
        ("1.34", "1.34.2", ""),
        ("1.34.4", "1.36.0", "skips a minor"),
        ("1.34", "1.36", "skips a minor"),
        ("1.35.4", "1.34.4", "is older"),
        ("1.34.4", "1.34.3", "is older"),
        ("1.35", "1.34.4", "is older"),
    ],
)
def test_one_minor_at_a_time_and_never_back(before: str, after: str, wrong: str) -> None:
    found = findings_of(("gpu: kubernetes", before, after))
    assert [code for code, _ in found] == (["GC1009"] if wrong else [])
    assert all(wrong in summary for _, summary in found)


def test_pools_that_take_the_same_step_are_reported_together() -> None:
    step = ("1.34.4", "1.36.0")
    ((_, summary),) = findings_of(("head: kubernetes", *step), ("gpu: kubernetes", *step))
    assert summary.endswith("(pools head, gpu)")


def test_other_software_has_no_version_skew() -> None:
    assert findings_of(("gpu: slurm", "25.05", "24.05"), ("gcluster", "0.2.0", "0.1.0")) == []


def test_a_cluster_that_was_taken_down_begins_with_any_version() -> None:
    assert findings_of(("gpu: kubernetes", "1.35.4", "1.34.4"), joined=False) == []
