"""A cluster that an older gcluster made: verbs refuse its state alike, untouched, and name `up`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..lifecycle.sample_cluster import tree

CASE = Path(__file__).parents[1] / "cases" / "state" / "format-3.yaml"
VERBS = (
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
    """Return the state of format 3 next to a spec, as that version left it."""
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
    assert "gcluster up " in answer
    assert "gcluster state upgrade " in answer
    assert tree(old) == before


def test_up_rewrites_it_once_that_is_agreed_to_and_continues(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    written: dict[str, str] = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    spec, state = tmp_path / "old.yaml", tmp_path / ".gcluster" / "old"
    spec.write_text(json.loads(written["applied/000001.json"])["spec"], encoding="utf-8")
    for key, content in written.items():
        (state / key).parent.mkdir(parents=True, exist_ok=True)
        (state / key).write_text(content.strip(), encoding="utf-8")
    before = tree(state)
    assert run("up", str(spec)).exit_code != 0
    assert tree(state) == before
    done = run("up", str(spec), "--yes")
    assert done.exit_code == 0, done.stderr
    assert "was written by an older gcluster: its format is 3" in " ".join(done.stdout.split())
    assert json.loads((state / "format.json").read_bytes())["version"] == 4  # now
    assert run("state", "check", str(spec)).exit_code == 0
    assert run("down", str(spec), "--yes").exit_code == 0
