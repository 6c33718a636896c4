"""Golden cases of the spill policy: a spec, a queue, and what is said of each job."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.golden_files import CASES, GoldenFiles, case_names, read_cases
from tests.lifecycle.burst.cases import CASE_FILE, case_files

from gcluster.lifecycle.operations.burst.policy import WORDS, Decision
from gcluster.lifecycle.operations.burst.saved_queue import Tried, read_queue, try_out


def _summary(decision: Decision) -> dict[str, Any]:
    """Return a decision without the reasons for a job that stays, which the laws are about."""
    against = {reason.word: reason.text for reason in decision.reasons if not reason.holds}
    if not decision.spills:
        answer = {"stays": against, "for ever": decision.is_final}
        return answer | ({"not before": decision.not_before} if decision.not_before else {})
    return {
        "new nodes": decision.new_nodes,
        "reuses": list(decision.reuses),
        "purchase_options": list(decision.purchase_options),
        "adds $/h": decision.adds_usd_per_hour,
        "until": decision.until,
        "stage": list(decision.stage),
        "for": {reason.word: reason.text for reason in decision.reasons},
    }


def _all(tried: Tried) -> dict[str, Any]:
    promise = tried.promise
    return {
        "promise": None if promise is None else {"job": promise.job, "at": promise.at},
        "jobs": {decision.job: _summary(decision) for decision in tried.decisions},
    }


@pytest.mark.parametrize("case", case_names(CASE_FILE))
def test_the_policy_decides_as_the_case_has(case: str, golden: GoldenFiles, tmp_path: Path) -> None:
    spec, queue = case_files(case, tmp_path)
    golden.check_case(CASE_FILE, case, "decides", _all(try_out(spec, read_queue(queue), None)))


def test_every_word_is_a_reason_against_some_job_of_the_cases() -> None:
    decided = [case["decides"] for case in read_cases(CASE_FILE).values()]
    words = {
        word for each in decided for job in each["jobs"].values() for word in job.get("stays", ())
    }
    elsewhere = {"software", "price"}  # tests/lifecycle/burst/test_fitting.py
    assert words == set(WORDS) - elsewhere


def test_the_page_on_hybrid_clusters_shows_every_word_in_order_and_the_example_as_it_is(
    root: Path,
) -> None:
    page = (root / "docs" / "hybrid.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE) == list(WORDS)
    page = (root / "docs" / "burst-simulate.md").read_text("utf-8")
    example = (CASES / "burst" / "simulate" / "expected.txt").read_text("utf-8")
    assert example.rstrip() in page
