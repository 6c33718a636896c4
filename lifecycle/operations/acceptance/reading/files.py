"""Parses the output of the storage benchmarks IOR, mdtest, fio and elbencho."""

from __future__ import annotations

import json
import re

from .result import Figure, Reading, reading

_IOR = re.compile(r"Max (Write|Read):\s+([\d.]+) MiB/sec")
_MDTEST = re.compile(r"\s*(File|Directory|Tree) (\w+)\s*:?((?:\s+[\d.]+){4})\s*$")
_RATES = {"creation": "create", "stat": "stat", "read": "read_files", "removal": "unlink"}
_PHASE = re.compile(r"([A-Z]+)\s+Elapsed time\s+:")
_LAST_DONE = re.compile(r"\s+Throughput MiB/s\s*:\s+\d+\s+(\d+)\s*$")
_MIB = 2**20


def read_ior(text: str) -> Reading:
    """Read IOR 3 and 4: the best of all repetitions, each way."""
    figures = [
        Figure(metric=match[1].lower(), value=float(match[2]) * _MIB / 1e9)
        for match in _IOR.finditer(text)
    ]
    lines = [line.strip() for line in text.splitlines() if re.match(r"(ior )?ERROR", line)]
    wrong = [line.strip() for line in text.splitlines() if "incorrect data" in line]
    return reading(figures, lines + wrong)


def read_mdtest(text: str) -> Reading:
    """Read the summary of mdtest 1.9 to 4.0: operations a second, the mean of its repetitions."""
    _, head, table = text.partition("SUMMARY rate")
    figures = []
    for line in table.splitlines() if head else ():
        match = _MDTEST.match(line)
        if match is None or match[1] != "File" or match[2] not in _RATES:
            continue
        _, _, mean, _ = map(float, match[3].split())
        if mean:  # 0: this phase was not requested
            figures.append(Figure(metric=_RATES[match[2]], value=mean))
    return reading(figures, [])


def read_elbencho(text: str) -> Reading:
    """Read elbencho's tables: what all nodes wrote and read until the last one was done."""
    figures, phase = [], ""
    for line in text.splitlines():
        if match := _PHASE.match(line):
            phase = match[1].lower()
        elif (match := _LAST_DONE.match(line)) and phase in {"write", "read"}:
            figures.append(Figure(metric=phase, value=float(match[1]) * _MIB / 1e9))
    return reading(figures, [line.strip() for line in text.splitlines() if "ERROR" in line])


def read_fio(text: str) -> Reading:
    """Read `fio --output-format=json`: bandwidth of each job that moved data, IOPS, and errors."""
    try:
        answer = json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    except ValueError:
        return reading([], [f"no JSON of fio: {text.strip()[-200:]}"])
    figures, failures = [], []
    for job in answer.get("jobs", ()):
        if job.get("error"):
            failures.append(f"{job['jobname']}: error {job['error']}")
        for way in ("write", "read"):
            reported = job.get(way, {})
            if not reported.get("io_bytes"):
                continue
            random = "rand" in job["jobname"]
            metric, value = (
                (f"{way}_iops", reported["iops"]) if random else (way, reported["bw_bytes"] / 1e9)
            )
            figures.append(Figure(metric=metric, value=float(value)))
    return reading(figures, failures)
