"""Reads what the program `measure` of the role allreduce prints: lines of JSON."""

from __future__ import annotations

import json
from typing import Any

from .result import Figure, Reading, reading

MARK = "@measure "


def read_measure(text: str) -> Reading:
    """Return the figures; wrong data is a failure, and so is a line that can't be read."""
    figures: list[Figure] = []
    failures: list[str] = []
    remarks: list[str] = []
    for line in text.splitlines():
        if not line.startswith(MARK):
            if line.startswith("measure: "):
                failures.append(line)
            continue
        try:
            told = json.loads(line.removeprefix(MARK))
        except ValueError:
            failures.append(f"a result can't be read: {line[:120]}")
            continue
        _take(told, figures, failures, remarks)
    return reading(figures, failures, remarks)


def _take(
    told: dict[str, Any], figures: list[Figure], failures: list[str], remarks: list[str]
) -> None:
    part = " ".join(told.pop("pair", ()))
    told.pop("cpus", None)
    wrong = told.pop("wrong", 0)
    if missing := told.pop("missing", ""):
        remarks.append(f"{missing} isn't on the node")
    if wrong:
        where = f" between {part.replace(' ', ' and ')}" if part else ""
        failures.append(f"{wrong} wrong results{where} ({', '.join(told) or 'data'})")
    figures += [Figure(metric=name, value=float(v), part=part) for name, v in told.items()]
