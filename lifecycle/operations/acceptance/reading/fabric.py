"""Reads perftest between two nodes, and ibdiagnet's summary of a whole InfiniBand fabric."""

from __future__ import annotations

import re

from .result import Figure, Reading, reading

_STAGE = re.compile(r"-I-\s+(.+?)\s{2,}(\d+)\s+(\d+)\b")
_HEAD = re.compile(r"-I-\s+Stage\s+Warnings\s+Errors")


def read_perftest(text: str) -> dict[str, float]:
    """Return column -> value of the last row of a table of perftest: "BW average[Gb/sec]".

    Columns are separated by two blanks or a unit's bracket; {}: there is no row.
    """
    columns: list[str] = []
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.lstrip().startswith("#bytes"):
            columns = [c.strip() for c in re.findall(r"#\w+|[\w.%]+(?: \w+)?\[[^\]]+\]", line)]
        elif columns and re.match(r"\s*\d+\s+\d+\s", line):
            words = line.split()
            if len(words) >= len(columns):
                found = {c: float(w) for c, w in zip(columns, words, strict=False)}
    return found


def read_ibdiagnet(text: str) -> Reading:
    """Parse the summary of ibdiagnet 2: a stage with errors fails, warnings are reported."""
    _, head, table = text.partition("Summary")
    if not head or not _HEAD.search(table):
        return reading([], ["ibdiagnet printed no summary"])
    failures, remarks, stages = [], [], 0
    for line in table.splitlines():
        if _HEAD.search(line) or not (match := _STAGE.match(line.strip())):
            continue
        stages += 1
        name, warnings, errors = match[1], int(match[2]), int(match[3])
        if errors:
            failures.append(f"{name}: {errors} errors")
        if warnings:
            remarks.append(f"{name}: {warnings} warnings")
    figures = [Figure(metric="stages", value=float(stages))] if stages else []
    return reading(figures, failures, remarks)
