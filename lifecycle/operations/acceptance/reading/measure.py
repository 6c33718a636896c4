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
            answer = json.loads(line.removeprefix(MARK))
        except ValueError:
            failures.append(f"a result can't be read: {line[:120]}")
            continue
        _take(answer, figures, failures, remarks)
    return reading(figures, failures, remarks)


_OF_TOOLS = {
    "ib_write_bw": ("pair_rails", "BW average[Gb/sec]"),
    "ib_send_lat": ("pair_rail_latency", "t_avg[usec]"),
}


def _take_perftest(
    answer: dict[str, Any], part: str, figures: list[Figure], failures: list[str]
) -> None:
    metric, column = _OF_TOOLS[answer["tool"]]
    value = read_perftest(answer["text"]).get(column)
    rail = answer.get("rail", "")
    if value is None:
        lines = answer["text"].strip().splitlines() or ["it printed nothing"]
        who = part.replace(" ", " and ")
        failures.append(f"{answer['tool']} between {who} {rail}: {lines[-1][:120]}")
    else:
        figures.append(Figure(metric=metric, value=value, part=f"{part} {rail}".strip()))


def _take(
    answer: dict[str, Any], figures: list[Figure], failures: list[str], remarks: list[str]
) -> None:
    part = " ".join(answer.pop("pair", ()))
    if "tool" in answer:
        _take_perftest(answer, part, figures, failures)
        return
    answer.pop("cpus", None)
    wrong = answer.pop("wrong", 0)
    if missing := answer.pop("missing", ""):
        remarks.append(f"{missing} isn't on the node")
    if wrong:
        where = f" between {part.replace(' ', ' and ')}" if part else ""
        failures.append(f"{wrong} wrong results{where} ({', '.join(answer) or 'data'})")
    figures += [Figure(metric=name, value=float(v), part=part) for name, v in answer.items()]
