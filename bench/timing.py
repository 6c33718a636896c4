"""Measure and report: interleaved cold starts, fitted exponents, the verdict and the machine."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Result:
    """One measured figure and the limit it must stay under (None: shown, not judged)."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def is_ratio(self) -> bool:
        """Whether it is the same on every machine: an exponent, a ratio, a share or a count."""
        return self.unit in ("", "x")

    @property
    def ok(self) -> bool:
        """Whether the figure is within its limit."""
        return self.limit is None or self.value <= self.limit


def machine() -> str:
    """Return CPU model, cores this process may use, and Python: a figure means nothing without."""
    model = "unknown CPU"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, {platform.python_implementation()} {platform.python_version()}"


def cold_seconds(command: list[str]) -> float:
    """Return the wall time in seconds of one cold process; raises when the command fails."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=with_bytecode())
    return time.perf_counter() - began


def interleaved(
    commands: dict[str, list[str]],
    rounds: int,
    measure: Callable[[list[str]], float] = cold_seconds,
) -> dict[str, float]:
    """Return the median seconds of each command, taken in turn so that noise hits all alike.

    One round before the measured ones writes bytecode and fills the page cache.

    Args:
        commands: name -> what to run.
        rounds: how often each is measured.
        measure: wall time, or seconds on a core (`cpu_seconds`).
    """
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for round_number in range(rounds + 1):
        for name, command in commands.items():
            seconds = measure(command)
            if round_number:
                samples[name].append(seconds)
    return {name: statistics.median(values) for name, values in samples.items()}


def cpu_seconds(command: list[str]) -> float:
    """Return the seconds that one cold process took on a core; raises when the command fails.

    Unlike wall time they hardly grow where the machine has other work, so ratios and exponents
    are made of these.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cold_seconds(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fitted_exponent(points: dict[int, float]) -> float:
    """Return b of seconds = a * size**b, by least squares in log-log.

    Args:
        points: size -> seconds; at least two sizes, all values positive.
    """
    xs = [math.log(size) for size in points]
    ys = [math.log(seconds) for seconds in points.values()]
    return statistics.linear_regression(xs, ys).slope


def with_bytecode() -> dict[str, str]:
    """Return the environment with Python's bytecode cache on, as on a user's machine."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark understands: --json and --ratios."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--ratios",
        action="store_true",
        help="show and judge exponents, ratios, shares and counts only, no seconds and bytes",
    )
    return parser


def report(title: str, results: list[Result], *, as_json: bool, ratios: bool = False) -> int:
    """Print the results with the machine named; return 1 when one is over its limit.

    Args:
        title: what was measured.
        results: the figures, in the order they are shown.
        as_json: print JSON instead of a table.
        ratios: leave out what depends on the machine (`Result.is_ratio`).
    """
    results = [result for result in results if result.is_ratio or not ratios]
    if as_json:
        rows = [asdict(result) | {"ok": result.ok} for result in results]
        print(json.dumps({"benchmark": title, "machine": machine(), "results": rows}, indent=2))
    else:
        print(f"{title}   ({machine()})")
        for result in results:
            limit = "" if result.limit is None else f"limit {result.limit:g}"
            verdict = "" if result.limit is None else ("ok" if result.ok else "OVER")
            print(
                f"  {result.name:<44} {result.value:>10.3f} {result.unit:<5} {limit:<12} {verdict}"
            )
    sys.stdout.flush()
    return 0 if all(result.ok for result in results) else 1
