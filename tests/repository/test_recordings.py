"""Recorded tool outputs say what they are, and docs/testing-roles.md says how many are real."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import recordings

sys.path.pop(0)

NEEDED = ("tool", "version", "machine")


def test_every_recording_says_tool_version_machine_and_where_it_comes_from(root: Path) -> None:
    silent = {
        str(path.relative_to(root)): said
        for path in recordings.recordings()
        if not all((said := recordings.head(path)).get(key) for key in NEEDED)
        or not (recordings.is_synthetic(path) or said.get("source"))
    }
    assert recordings.recordings()
    assert silent == {}


def test_a_recording_that_answers_is_named_after_its_tool(root: Path) -> None:
    wrong = [
        str(path.relative_to(root))
        for path in recordings.recordings()
        if not path.suffix and recordings.head(path)["tool"] != path.name
    ]
    assert wrong == []


def test_the_page_on_testing_counts_them() -> None:
    page = recordings.PAGE.read_text(encoding="utf-8")
    assert recordings.BEGIN in page
    assert recordings.with_table(page) == page, "make docs writes the counts again"
