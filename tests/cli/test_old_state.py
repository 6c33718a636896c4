"""A cluster that an unreleased gcluster made: every verb refuses its state alike, untouched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..lifecycle.sample_cluster import tree

CASE = Path(__file__).parents[1] / "cases" / "state" / "format-3.yaml"
VERBS = (
    "up PATH --yes",
    "plan PATH",
    "status PATH",
    "drift PATH",
    "drift PATH --fix --yes",
    "smoke PATH",
    "history PATH",
    "ledger check PATH",
    "state check PATH",
    "state repair PATH --yes",
    "down PATH --yes",
)


@pytest.fixture
def old(spec: Path) -> Path:
    """Return the state of format 3 beside a spec, as that version left it."""
    written: dict[str, str] = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    state = spec.parent / ".gcluster" / "demo"
    for key, content in written.items():
        (state / key).parent.mkdir(parents=True, exist_ok=True)
        (state / key).write_text(content.strip(), encoding="utf-8")
    return state


@pytest.mark.parametrize("verb", VERBS)
def test_state_of_an_older_format_is_refused_with_what_to_do_and_left_as_it_is(
    run: Callable[..., Any], spec: Path, old: Path, verb: str
) -> None:
    before = tree(old)
    done = run(*(str(spec) if word == "PATH" else word for word in verb.split()))
    assert done.exit_code == 1
    answer = " ".join(done.stderr.split())
    assert "GC902" in answer
    assert "its format is 3, this version reads 4" in answer
    assert (
        "take the cluster down with the version that made it, delete what it left there" in answer
    )
    assert tree(old) == before
