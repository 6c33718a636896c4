"""The workflow of pushes and pull requests runs what CI runs, and verbs that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def jobs(root: Path) -> dict[str, Any]:
    """Return the jobs of the workflow."""
    text = (root / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return found


def _stages(root: Path) -> set[str]:
    """Return the stages that .ci/stages says it knows."""
    refused = subprocess.run(
        [root / ".ci/stages", "no-such-stage"], capture_output=True, text=True, check=False
    )
    return set(refused.stderr.partition(": ")[2].split())


def test_every_stage_runs_once_on_a_push(root: Path, jobs: dict[str, Any]) -> None:
    rows = jobs["stages"]["strategy"]["matrix"]["stages"]
    named = [stage for row in rows for stage in row.split()]
    assert sorted(named) == sorted(_stages(root))


def test_every_verb_of_the_night_is_one_of_make(root: Path, jobs: dict[str, Any]) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE))
    assert set(jobs["nightly"]["strategy"]["matrix"]["verb"]) - verbs == set()


def test_actions_are_pinned_to_commits(jobs: dict[str, Any]) -> None:
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    assert [name for name in used if not re.search(r"@[0-9a-f]{40}$", name)] == []
