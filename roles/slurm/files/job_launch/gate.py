"""The gate around a job: its nodes exchange messages two by two, and slow ones are named.

A node that is slow after a job is reported to its own health check: a file in a folder of that
node in which every user may leave one. The check (role node_health) takes it from the owner of a
job that has the node alone, and drains.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import nodes

MEASURE = "/usr/libexec/gcluster/measure"
"""Of role allreduce: all pairs by MPI, every byte compared."""
SLOW_SHARE = 0.5
"""A node whose best pair has less than this share of the median is slow: a quick look has noise."""

REPORTS = Path(os.environ.get("GCLUSTER_SLOW_NODES", "/var/spool/gcluster-slow-nodes"))
"""Of role node_health, which reads and empties it."""
FEWEST = 3
"""Of fewer nodes the slow one can't be named."""
READ_S = 30.0
"""So long the health check may take to read a report: systemd starts it at once."""


class Gate(NamedTuple):
    """What the gate found."""

    best: dict[str, float]
    """Node -> GB/s of its best pair."""
    slow: dict[str, str]
    """Slow node -> how slow."""
    lines: list[str]
    middle: float = 0.0
    """GB/s of the node in the middle."""

    def also(self, again: Gate) -> Gate:
        """Return what a second look confirms: nodes that were slow both times."""
        slow = {node: why for node, why in again.slow.items() if node in self.slow}
        lines = [again.lines[0], *(f"gate: {node} is {why}" for node, why in slow.items())]
        return again._replace(slow=slow, lines=lines)


class Gates:
    """The measurements around a job, their lines in its log, and their results on the job."""

    def __init__(self, say: Callable[[str], None], note: Callable[..., None]) -> None:
        """Keep what prints a line, and what adds an event to the journal."""
        self._say, self._note = say, note

    def before(self, names: Sequence[str], limit_s: float) -> dict[str, str]:
        """Return the nodes that are slow before the job starts, and how slow."""
        found = self._look(names, limit_s)
        rest = "" if found.best else "; the job starts all the same"
        self._tell("before", found._replace(lines=[f"{line}{rest}" for line in found.lines]))
        return found.slow

    def after(self, names: Sequence[str], limit_s: float) -> list[tuple[str, str, str]]:
        """Return node, GB/s of its best pair, and GB/s in the middle, of those that became slow.

        What is slow is measured once more: drained is only what was slow both times.
        """
        if len(names) < FEWEST:
            self._say(f"gate: {len(names)} nodes are left: none can be called the slow one")
            return []
        found = self._look(names, limit_s)
        if found.slow:
            found = found.also(self._look(names, limit_s))
        self._tell("after", found)
        return [(node, f"{found.best[node]:.3f}", f"{found.middle:.3f}") for node in found.slow]

    def _look(self, names: Sequence[str], limit_s: float) -> Gate:
        return passed(nodes.sizes(names, tasks=len(names)), nodes.environment(), limit_s)

    def _tell(self, when: str, found: Gate) -> None:
        """Print a result, write it into the journal, and into the job's comment (Slurm)."""
        for line in found.lines:
            self._say(line)
        slow = sorted(found.slow)
        self._note("gate", when=when, best=found.best, middle=found.middle, slow=slow)
        nodes.remark(f"gate-{when}", ",".join(slow) or ("ok" if found.best else "none"))


def report(best: str, middle: str) -> None:
    """Leave word for the health check of this node that its job found it slow, until it is read.

    Args:
        best: GB/s of its best pair.
        middle: GB/s of the node in the middle.
    """
    host, mine = nodes.HOST, REPORTS / nodes.JOB
    try:
        file = os.open(str(mine), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with os.fdopen(file, "w", encoding="utf-8") as writer:
            json.dump({"best": float(best), "middle": float(middle)}, writer)
    except OSError as error:
        said = f"is not reported to its health check: {error}"
    else:
        until = time.monotonic() + READ_S
        while mine.exists() and time.monotonic() < until:
            time.sleep(0.2)
        is_read = not mine.exists()
        said = "is reported to its health check" + ("" if is_read else ", which has not read it")
    sys.stdout.write(f"gcluster: gate: {host} {said}\n")


def passed(sizes: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Gate:
    """Measure the nodes of a job two by two.

    Args:
        sizes: srun's options that name the nodes.
        environment: of srun.
        limit_s: how long it may take; a gate without a result says nothing of any node.
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
        line = f"gate: no result after {took:.0f} s (exit code {code})"
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
    lines = [head, *(f"gate: {node} is {why}" for node, why in slow.items())]
    return Gate(dict(best), slow, lines, middle)


def speeds(text: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield each pair that `measure pairs` measured, with its GB/s."""
    for line in text.splitlines():
        if not line.startswith("@measure "):
            continue
        found = json.loads(line[len("@measure ") :])
        if "pair_bandwidth" in found:
            yield tuple(found["pair"]), float(found["pair_bandwidth"])
