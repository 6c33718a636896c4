"""Reads the table of nccl-tests, rccl-tests or our own program, by the gate's parser and judge."""

from __future__ import annotations

from ....smoke.judging.judge import judge
from ....smoke.judging.verdict import Expectation
from ....smoke.reading.parse import parse_log
from .result import Figure, Reading


def read_collective(text: str, expected: Expectation) -> Reading:
    """Return the bus bandwidth at the largest message, and what the judge has against the run."""
    verdict = judge(parse_log(text.splitlines(keepends=True)), expected)
    known = verdict.busbw is not None
    return Reading(
        figures=(Figure(metric="busbw", value=verdict.busbw or 0.0),) if known else (),
        failures=tuple(f"{reason.code}: {reason.message}" for reason in verdict.reasons),
        remarks=tuple(
            f"{warned.code}: {warned.message}"
            for warned in verdict.warnings
            if warned.code != "no-floor"
        ),
    )
