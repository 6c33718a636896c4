"""Reads what the program `measure` of the role allreduce prints: lines of JSON."""

from __future__ import annotations

import json
from typing import Any

from .fabric import read_perftest
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


_OF_TOOLS = {
    "ib_write_bw": ("pair_rails", "BW average[Gb/sec]"),
    "ib_send_lat": ("pair_rail_latency", "t_avg[usec]"),
}


def _take_perftest(
    told: dict[str, Any], part: str, figures: list[Figure], failures: list[str]
) -> None:
    metric, column = _OF_TOOLS[told["tool"]]
    value = read_perftest(told["text"]).get(column)
    rail = told.get("rail", "")
    if value is None:
        lines = told["text"].strip().splitlines() or ["it printed nothing"]
        who = part.replace(" ", " and ")
        failures.append(f"{told['tool']} between {who} {rail}: {lines[-1][:120]}")
    else:
        figures.append(Figure(metric=metric, value=value, part=f"{part} {rail}".strip()))


def _take(
    told: dict[str, Any], figures: list[Figure], failures: list[str], remarks: list[str]
) -> None:
    part = " ".join(told.pop("pair", ()))
    if "tool" in told:
        _take_perftest(told, part, figures, failures)
        return
    told.pop("cpus", None)
    wrong = told.pop("wrong", 0)
    if missing := told.pop("missing", ""):
        remarks.append(f"{missing} isn't on the node")
    if wrong:
        where = f" between {part.replace(' ', ' and ')}" if part else ""
        failures.append(f"{wrong} wrong results{where} ({', '.join(told) or 'data'})")
    figures += [Figure(metric=name, value=float(v), part=part) for name, v in told.items()]
