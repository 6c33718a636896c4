"""Golden cases of the spill policy: a spec, a queue, and what is said of each job."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.burst.policy import WORDS, Decision
from gcluster.lifecycle.burst.saved_queue import Tried, read_queue, try_out

CASES = Path(__file__).parents[2] / "cases" / "burst" / "decide"


def _told(decision: Decision) -> dict[str, Any]:
    """Return a decision without what speaks for a job that stays, which the laws are about."""
    against = {reason.word: reason.text for reason in decision.reasons if not reason.holds}
    if not decision.spills:
        told = {"stays": against, "for ever": decision.is_final}
        return told | ({"not before": decision.not_before} if decision.not_before else {})
    return {
        "new nodes": decision.new_nodes,
        "reuses": list(decision.reuses),
        "rungs": list(decision.rungs),
        "adds $/h": decision.adds_usd_per_hour,
        "until": decision.until,
        "stage": list(decision.stage),
        "for": {reason.word: reason.text for reason in decision.reasons},
    }


def _all(tried: Tried) -> dict[str, Any]:
    promise = tried.promise
    return {
        "promise": None if promise is None else {"job": promise.job, "at": promise.at},
        "jobs": {decision.job: _told(decision) for decision in tried.decisions},
    }


def _of(case: Path) -> dict[str, Any]:
    return _all(try_out(case / "spec.yaml", read_queue(case / "queue.json"), None))


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_the_policy_decides_as_the_case_says(case: Path) -> None:
    assert _of(case) == json.loads((case / "expected.json").read_text("utf-8"))


def test_every_word_speaks_against_some_job_of_the_cases() -> None:
    told = [json.loads(path.read_text("utf-8")) for path in CASES.glob("*/expected.json")]
    said = {word for each in told for job in each["jobs"].values() for word in job.get("stays", ())}
    elsewhere = {"software", "price"}  # tests/lifecycle/burst/test_fitting.py
    assert said == set(WORDS) - elsewhere


def test_the_page_on_hybrid_clusters_tells_every_word_in_order_and_the_example_as_it_is() -> None:
    page = (CASES.parents[3] / "docs" / "hybrid.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE) == list(WORDS)
    example = (CASES.parent / "simulate" / "expected.txt").read_text("utf-8")
    assert example.rstrip() in page


if __name__ == "__main__":  # writes what is said now: read it
    for name in sys.argv[1:] or [each.name for each in sorted(CASES.iterdir())]:
        text = json.dumps(_of(CASES / name), indent=2, ensure_ascii=False)
        (CASES / name / "expected.json").write_text(f"{text}\n", encoding="utf-8")
