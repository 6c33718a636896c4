"""Logs written from the formats' descriptions: none wrongly passed, none wrongly failed."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from tests.golden_files import CASES, read_cases

from gcluster.lifecycle.smoke.saved import judge_saved
from gcluster.schemas.catalog import load_catalog

LOGS = read_cases(CASES / "allreduce_logs.yaml") | read_cases(CASES / "allreduce_log_shapes.yaml")
FIRST_PID, GPUS = 4000, 8
"""In these logs rank N has this process id and N, and a node this many ranks."""
CATALOG = load_catalog()


def text_of(case: dict[str, Any]) -> str:
    """Return a section's log: its own, or another section's with what is changed in it."""
    text: str = case["log"] if "log" in case else text_of(LOGS[case["from"]])
    for old, new in case.get("replace", []):
        assert old in text, f"nothing to replace: {old}"
        text = text.replace(old, new)
    if "until" in case:
        text = text[: text.index(case["until"])]
    text = (text + text if case.get("twice") else text) + str(case.get("append", ""))
    text = "".join(labelled(line, case.get("label", "")) for line in text.splitlines(True))
    text = str(case.get("first", "")) + text
    return text.encode(case.get("encoding", "utf-8")).decode("utf-8", "replace")


def labelled(line: str, label: str) -> str:
    """Return a line behind a launcher's label, which may name its rank and node."""
    pid = re.search(r":(\d+):\d+ \[", line)
    rank = int(pid[1]) - FIRST_PID if pid else 0
    return label.format(rank=rank, host=f"gpu{rank // GPUS + 1:03d}") + line


@pytest.mark.parametrize("name", LOGS)
def test_a_log_written_from_the_descriptions_is_judged_right(name: str) -> None:
    case = LOGS[name]
    about = case if "fabric" in case else LOGS[case["from"]]
    verdict = judge_saved(
        io.StringIO(text_of(case)),
        fabric=about["fabric"],
        machine=about["machine"],
        nodes=about["nodes"],
        catalog=CATALOG,
    ).verdict
    found = list(dict.fromkeys(reason.code for reason in verdict.reasons))
    assert (verdict.verdict, found) == (case["verdict"], case["codes"]), verdict.reasons
