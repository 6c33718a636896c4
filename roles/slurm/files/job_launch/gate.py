"""The gate before a job: its nodes exchange messages two by two, and slow ones are named."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

MEASURE = "/usr/libexec/gcluster/measure"
"""Of role allreduce: all pairs by MPI, every byte compared."""
SLOW_SHARE = 0.5
"""A node whose best pair has less than this share of the median is slow: a quick look has noise."""


class Gate(NamedTuple):
    """What the gate found."""

    best: dict[str, float]
    """Node -> GB/s of its best pair."""
    slow: dict[str, str]
    """Slow node -> how slow."""
    lines: list[str]


def passed(sizes: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Gate:
    """Measure the nodes of a job two by two.

    Args:
        sizes: srun's options that name the nodes.
        environment: of srun.
        limit_s: how long it may take; a gate without a result keeps no job from starting.
    """
    began = time.monotonic()
    words = ["srun", "--overlap", "--job-name=gate", *sizes, "--mpi=pmix"]
    words += ["--ntasks-per-node=1", "--cpu-bind=none", MEASURE, "pairs"]
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, check=False, timeout=limit_s, env=environment
        )
        text, code = done.stdout.decode("utf-8", "replace"), done.returncode
    except subprocess.TimeoutExpired:
        text, code = "", 124
    took = time.monotonic() - began
    best: dict[str, float] = {}
    for pair, speed in speeds(text):
        for node in pair:
            best[node] = max(best.get(node, 0.0), speed)
    if code or not best:
        line = f"gate: no result after {took:.0f} s (exit code {code}); the job starts all the same"
        return Gate({}, {}, [line])
    return judged(best, took)


def judged(best: Mapping[str, float], took: float) -> Gate:
    """Compare nodes with their median; with two nodes neither can be called the slow one."""
    middle = statistics.median(best.values())
    slow = {
        node: f"slow: {speed:.2f} GB/s, {middle:.2f} in the middle"
        for node, speed in best.items()
        if speed < middle * SLOW_SHARE
    }
    head = f"gate: {len(best)} nodes two by two: {middle:.2f} GB/s in the middle, "
    head += f"{min(best.values()):.2f} at least, in {took:.0f} s"
    return Gate(dict(best), slow, [head, *(f"gate: {node} is {why}" for node, why in slow.items())])


def speeds(text: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield each pair that `measure pairs` measured, with its GB/s."""
    for line in text.splitlines():
        if not line.startswith("@measure "):
            continue
        found = json.loads(line[len("@measure ") :])
        if "pair_bandwidth" in found:
            yield tuple(found["pair"]), float(found["pair_bandwidth"])
