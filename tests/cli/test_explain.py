"""`gcluster explain`: every check, every family, and what is no code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gcluster.schemas.checks import CHECKS


@pytest.mark.parametrize("code", sorted(CHECKS))
def test_every_check_is_explained(run: Callable[..., Any], code: str) -> None:
    done = run("explain", code.lower())
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{code}   {CHECKS[code].summary}\n")
    assert CHECKS[code].explanation.split()[-1] in done.stdout


@pytest.mark.parametrize("family", range(10))
def test_a_code_that_is_no_check_is_placed_in_its_family(
    run: Callable[..., Any], family: int
) -> None:
    code = f"GC{family}99"
    assert code not in CHECKS
    done = run("explain", code)
    assert done.exit_code == 0
    assert len(done.stdout.split()) > 2


@pytest.mark.parametrize("word", ["GC1", "204", "GC2041", "XX204"])
def test_what_is_no_code_is_a_usage_error(run: Callable[..., Any], word: str) -> None:
    assert run("explain", word).exit_code == 64


def test_json_has_the_same_words(run: Callable[..., Any]) -> None:
    code = min(CHECKS)
    told = json.loads(run("explain", code, "--format", "json").stdout)
    assert told["summary"] == CHECKS[code].summary
