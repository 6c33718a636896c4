"""Reads HPL (Linpack): the speed of its runs, and whether every residual passed."""

from __future__ import annotations

import re

from .result import Figure, Reading, reading

_ROW = re.compile(r"^W[RC]\w+\s+\d+\s+\d+\s+\d+\s+\d+\s+[\d.]+\s+([\d.]+e[+-]?\d+)", re.MULTILINE)
_COUNT = re.compile(r"(\d+) tests (completed and failed residual checks|skipped)")
_END = "End of Tests."


def read_hpl(text: str) -> Reading:
    """Return the speed of the best run; a residual that failed, or no end, is a failure."""
    speeds = [float(speed) for speed in _ROW.findall(text)]
    failures = [f"{count} tests {what}" for count, what in _COUNT.findall(text) if int(count)]
    if _END not in text:
        failures.append("HPL came to no end")
    figures = [Figure(metric="hpl", value=max(speeds))] if speeds else []
    return reading(figures, failures)
