"""Logs written from the formats' descriptions: none wrongly passed, none wrongly failed."""

from __future__ import annotations

import io
from typing import Any

import pytest
from tests.golden_files import CASES, read_cases

from gcluster.lifecycle.smoke.saved import judge_saved
from gcluster.schemas.catalog import load_catalog

LOGS = read_cases(CASES / "allreduce_logs.yaml")
CATALOG = load_catalog()


def text_of(case: dict[str, Any]) -> str:
    """Return a section's log: its own, or another section's with what is changed in it."""
    text: str = case["log"] if "log" in case else text_of(LOGS[case["from"]])
    for old, new in case.get("replace", []):
        assert old in text, f"nothing to replace: {old}"
        text = text.replace(old, new)
    if "until" in case:
        text = text[: text.index(case["until"])]
    return (text + text if case.get("twice") else text) + str(case.get("append", ""))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_written_from_the_descriptions_is_judged_right(name: str) -> None:
    case = LOGS[name]
    verdict = judge_saved(
        io.StringIO(text_of(case)),
        fabric=case["fabric"],
        machine=case["machine"],
        nodes=case["nodes"],
        catalog=CATALOG,
    ).verdict
    found = list(dict.fromkeys(reason.code for reason in verdict.reasons))
    assert (verdict.verdict, found) == (case["verdict"], case["codes"]), verdict.reasons
