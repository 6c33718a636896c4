"""Parses the output of the vendors' tools about the GPUs of one node."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from .result import Figure, Reading, reading

_NO_FAULT = frozenset({"pass", "skip", "skipped", "not run"})
"""States of a DCGM check that are no failure; a skipped check is reported."""
_BURN = re.compile(r"[\d.]+%\s+proc'd: (.+?)\s+errors: (.+?)(?:\s+temps?: (.+))?$")
_GFLOPS = re.compile(r"\(([\d.]+) Gflop/s\)")
_OF_GPU = re.compile(r"\s*GPU (\d+): (OK|FAULTY)")
_RVS = re.compile(
    r"\[RESULT\s*\]\s*\[[\s\d.]+\]\s*\[(?P<action>[^\]]+)\]\s*(?:\[[^\]]*\]\s*)*"
    r"(?P<module>\w+) (?P<gpu>\d+)\b(?P<rest>.*)",
    re.IGNORECASE,
)
_RVS_GFLOPS = re.compile(r"\bGFLOPS?:? ([\d.]+)", re.IGNORECASE)
_RVS_PASS = re.compile(r"\b(?:pass|met)\b.*?:\s*(TRUE|FALSE)", re.IGNORECASE)
_NVBANDWIDTH = {
    "host_to_device_memcpy_ce": "host_to_gpu",
    "device_to_host_memcpy_ce": "gpu_to_host",
    "device_to_device_memcpy_read_ce": "gpu_to_gpu_read",
    "device_to_device_memcpy_write_ce": "gpu_to_gpu_write",
}


def read_dcgm(text: str) -> Reading:
    """Read `dcgmi diag -j`: DCGM 2 and 3 name GPUs by gpu_ids, DCGM 4 by entity_id."""
    try:
        answer = _json(text)
    except ValueError:
        return reading([], [f"no JSON of dcgmi: {text.strip()[-200:] or 'it printed nothing'}"])
    top = next((value for key, value in answer.items() if "Diagnostic" in key), answer)
    passed, failures, skipped = 0, [], []
    reported = top if isinstance(top, dict) else {}
    problems = (reported.get(name) for name in ("runtime_error", "Runtime Error", "error"))
    failures += [f"dcgmi: {problem}" for problem in problems if problem]
    for name, result in _checks(top):
        state = str(result.get("status", "")).lower()
        who = result.get("gpu_ids", result.get("entity_id", ""))
        where = "" if who in {"", -1} else f" (GPU {who})"
        if state not in _NO_FAULT:
            failures.append(f"{name}{where}: {state or 'no state'}{_why(result)}")
        elif state == "pass":
            passed += 1
        else:
            skipped.append(name)
    remarks = [f"skipped: {', '.join(dict.fromkeys(skipped))}"] if skipped else []
    figures = [Figure(metric="checks", value=float(passed))] if passed else []
    return reading(figures, failures, remarks)


def _json(text: str) -> dict[str, Any]:
    """Return the JSON object in a text that may have lines before it; raises ValueError."""
    answer = json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    return dict(answer)


def _checks(top: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for category in (top or {}).get("test_categories", ()):
        for test in category.get("tests", ()):
            for result in (test or {}).get("results", ()):  # DCGM 3 writes null between tests
                yield test["name"], result


def _why(result: dict[str, Any]) -> str:
    reported = result.get("warnings") or result.get("warning") or ()
    texts = [reported] if isinstance(reported, str) else reported
    words = [one.get("warning", "") if isinstance(one, dict) else str(one) for one in texts]
    return f": {'; '.join(words)}" if words else ""


def read_rvs(text: str) -> Reading:
    """Parse the log of RVS: the result of an action is TRUE or FALSE for a GPU."""
    speeds: dict[str, list[float]] = defaultdict(list)
    failures = []
    for line in text.splitlines():
        match = _RVS.search(line)
        if match is None:
            if "[ERROR" in line:
                failures.append(line.strip()[:200])
            continue
        gpu = f"GPU {match['gpu']}"
        if speed := _RVS_GFLOPS.search(match["rest"]):
            speeds[gpu].append(float(speed[1]))
        verdict = _RVS_PASS.search(match["rest"])
        if verdict and verdict[1].upper() == "FALSE":
            failures.append(f"{match['action']} {match['module']} fails on {gpu}")
    figures = [Figure(metric="gflops", value=max(all_), part=gpu) for gpu, all_ in speeds.items()]
    return reading(figures, failures)


def read_nvbandwidth(text: str) -> Reading:
    """Read `nvbandwidth -j`: a matrix for each test case, GB/s, N/A where nothing is measured."""
    try:
        top = _json(text)["nvbandwidth"]
    except (ValueError, KeyError):
        return reading([], [f"no JSON of nvbandwidth: {text.strip()[-200:]}"])
    figures: list[Figure] = []
    failures = [f"nvbandwidth: {top['error']}"] if top.get("error") else []
    remarks = []
    for case in top.get("testcases", ()):
        name, state = case["name"], case.get("status", "")
        if state == "Waived":
            remarks.append(f"{name} was waived")
        elif state != "Passed":
            failures.append(f"{name}: {state} {case.get('error', '')}".strip())
        elif metric := _NVBANDWIDTH.get(name):
            figures += _cells(metric, case["bandwidth_matrix"])
    return reading(figures, failures, remarks)


def _cells(metric: str, matrix: list[list[str]]) -> Iterator[Figure]:
    for at, row in enumerate(matrix):
        for column, cell in enumerate(row):
            if cell == "N/A" or (len(matrix) > 1 and at == column):
                continue
            part = f"GPU {column}" if len(matrix) == 1 else f"GPU {at}-{column}"
            yield Figure(metric=metric, value=float(cell), part=part)


def read_gpu_burn(text: str) -> Reading:
    """Parse gpu_burn's output, with nvidia-smi's lines `smi, INDEX, WATT, MHz, °C` in it."""
    speeds: dict[int, list[float]] = defaultdict(list)
    sensors: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    failures, ended = [], set()
    for line in text.replace("\r", "\n").splitlines():
        if line.startswith("smi,"):
            _sensor(line, sensors)
        elif match := _BURN.search(line):
            for gpu, speed in enumerate(_GFLOPS.findall(match[1])):
                speeds[gpu].append(float(speed))
        elif match := _OF_GPU.match(line):
            ended.add(int(match[1]))
            if match[2] == "FAULTY":
                failures.append(f"GPU {match[1]} computed wrong numbers")
    failures += [f"GPU {gpu} came to no end" for gpu in sorted(speeds.keys() - ended)]
    figures = [
        Figure(metric="gflops", value=median(all_), part=f"GPU {gpu}")
        for gpu, all_ in speeds.items()
    ]
    for gpu, samples in sensors.items():
        busy = sorted(samples)[len(samples) // 2 :]  # the burn begins and ends in between
        for metric, place in (("power", 0), ("clock", 1), ("temperature", 2)):
            value = median(sample[place] for sample in busy)
            figures.append(Figure(metric=metric, value=value, part=f"GPU {gpu}"))
    return reading(figures, failures)


def _sensor(line: str, sensors: dict[int, list[tuple[float, ...]]]) -> None:
    try:
        index, *values = (float(word) for word in line.split(",")[1:])
    except ValueError:  # a sensor that the GPU hasn't: [N/A]
        return
    if len(values) == 3:  # noqa: PLR2004  # power, clock, temperature
        sensors[int(index)].append(tuple(values))
