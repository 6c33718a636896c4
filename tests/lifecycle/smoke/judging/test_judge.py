"""The judge on golden logs, and the law that what the log doesn't show never passes."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden_files import CASES, read_cases

from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Code, Expectation, Verdict
from gcluster.lifecycle.smoke.reading.parse import parse_log

FILE = CASES / "smoke.yaml"
NAMES = [name for name, case in read_cases(FILE).items() if "verdict" in case]


def read(name: str) -> tuple[list[str], Expectation, dict[str, Any]]:
    """Return a golden log's lines, what was expected of it, and what must come out."""
    good, wanted = read_cases(FILE)["good"], read_cases(FILE)[name]
    lines = wanted.get("log", good["log"]).splitlines(keepends=True)
    for edit in reversed(wanted.get("edits", [])):
        first = edit["line"] - 1
        lines[first : first + edit["drop"]] = edit["put"].splitlines(keepends=True)
    expected = wanted.get("expectation", good["expectation"])
    return lines, msgspec.convert(expected, Expectation), wanted


OF_WIRES = {"wrong-transport", "no-transport", "no-gpudirect", "no-nvls", "through-host-memory"}
"""They take a fabric class: test_saved has their logs."""
OF_RAILS = {"dead-rail", "slow-rail"}
"""They take counters: test_rails has them."""


def verdict_on(lines: list[str], expected: Expectation) -> Verdict:
    return judge(parse_log(lines), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_log_gets_its_verdict(name: str) -> None:
    lines, expected, wanted = read(name)
    verdict = verdict_on(lines, expected)
    assert verdict.verdict == wanted["verdict"], verdict.reasons
    assert list(dict.fromkeys(reason.code for reason in verdict.reasons)) == wanted["codes"]
    for fact, value in wanted["facts"].items():
        assert getattr(verdict, fact) == value, fact


def test_every_code_has_a_golden_log() -> None:
    seen = {code for name in NAMES for code in read(name)[2]["codes"]}
    assert seen | OF_WIRES | OF_RAILS == set(get_args(Code))


GOOD, EXPECTED, _ = read("good")
WHOLE = parse_log(GOOD)

SAYS_NOTHING = ("#\n", "# gcluster allreduce payload", "# Using devices", "#        (B)", "#     ")
"""Lines without a fact that a verdict rests on: the payload's own name, titles and units."""

SAID_TWICE = ("# nThread", "# Collective test starting", "# gcluster transport")
"""Lines whose fact the expectation knows too, or that a verdict reports as not observed."""


@pytest.mark.parametrize("number", range(len(GOOD)))
def test_without_any_one_line_that_counts_a_log_does_not_pass(number: int) -> None:
    line = GOOD[number]
    verdict = verdict_on(GOOD[:number] + GOOD[number + 1 :], EXPECTED)
    harmless = line.startswith(SAID_TWICE) or (
        line.startswith(SAYS_NOTHING) and not line.startswith("#       size")
    )
    assert verdict.passed == harmless, line
    if line.startswith("# gcluster transport"):
        assert (verdict.transport, verdict.simulated) == ("", False)


@given(st.data())
def test_a_log_cut_anywhere_does_not_pass_unless_every_fact_is_there(data: st.DataObject) -> None:
    text = "".join(GOOD)
    cut = text[: data.draw(st.integers(0, len(text)))]
    log = parse_log(cut.splitlines(keepends=True))
    if judge(log, EXPECTED).passed:
        assert msgspec.structs.replace(log, damaged=()) == WHOLE


@given(st.sets(st.integers(0, len(GOOD) - 1), min_size=1))
def test_a_pass_has_all_ranks_rows_and_a_sound_footer_whatever_lines_are_lost(
    lost: set[int],
) -> None:
    log = parse_log([line for number, line in enumerate(GOOD) if number not in lost])
    if judge(log, EXPECTED).passed:
        assert (log.ranks, log.rows) == (WHOLE.ranks, WHOLE.rows)
        assert (log.footer.wrong, log.footer.average) == (0, WHOLE.footer.average)


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=80), max_size=30))
def test_no_text_passes_or_stops_the_parser(lines: list[str]) -> None:
    assert not verdict_on(lines, EXPECTED).passed


@given(st.integers(0, len(GOOD) - 1), st.text(alphabet="0123456789.e+-N/A \t", max_size=200))
def test_numbers_between_the_rows_never_become_a_row(at: int, noise: str) -> None:
    log = parse_log([*GOOD[: at + 1], noise + "\n", *GOOD[at + 1 :]])
    if judge(log, EXPECTED).passed:
        assert log.rows == WHOLE.rows


@given(st.permutations(GOOD[6:10]))
def test_the_order_in_which_ranks_introduce_themselves_does_not_matter(ranks: list[str]) -> None:
    assert verdict_on([*GOOD[:6], *ranks, *GOOD[10:]], EXPECTED).passed


@given(st.floats(0.01, 1000))
def test_a_floor_fails_exactly_what_is_below_it(floor: float) -> None:
    verdict = verdict_on(GOOD, msgspec.structs.replace(EXPECTED, floor=floor))
    assert verdict.busbw is not None
    assert verdict.passed == (verdict.busbw >= floor)
