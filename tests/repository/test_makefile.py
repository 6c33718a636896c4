"""The Makefile is the front door: whatever it can do, it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

INTERNAL = {"help", "environment"}  # the default goal itself, and the step every verb begins with


def _verbs(root: Path) -> list[str]:
    text = (root / "Makefile").read_text(encoding="utf-8")
    return [
        name for name in re.findall(r"^\.PHONY: (\S+)$", text, re.MULTILINE) if name not in INTERNAL
    ]


def test_bare_make_lists_every_verb_with_a_line_of_help(root: Path) -> None:
    listing = subprocess.run(
        ["make", "--no-print-directory"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    answer = dict(re.findall(r"^make (\S+) +(\S.*)$", listing, re.MULTILINE))
    assert sorted(answer) == sorted(_verbs(root))


def test_every_target_is_declared_as_a_verb(root: Path) -> None:
    text = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):(?!=)", text, re.MULTILINE))
    assert targets == {*_verbs(root), *INTERNAL}


def test_cases_of_laws_are_the_same_each_time_but_those_of_the_search(root: Path) -> None:
    ask = "import tests.conftest; from hypothesis import settings as s; print(s().derandomize)"
    output = {
        search: subprocess.run(
            [sys.executable, "-c", ask],
            cwd=root,
            env={**os.environ, "GCLUSTER_SEARCH": search},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for search in ("", "1")
    }
    assert output == {"": "True", "1": "False"}
