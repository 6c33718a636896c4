"""`make torture`: many seeded runs on all cores, then every bad input for every verb.

Usage: python -m tests.torture RUNS [FIRST SEED]. Exit code 1 when an invariant is broken. The seed
that broke it plays again by itself: python -m tests.torture 1 SEED.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from .bad_inputs import broken as broken_by
from .bad_inputs import every
from .scenario import BrokenError, Scenario


def play(seed: int) -> tuple[str, Counter[str]]:
    """Play one run; return what is broken, "" where nothing is, and what happened."""
    with tempfile.TemporaryDirectory(prefix="gc-", dir="/dev/shm") as folder:
        scenario = Scenario(seed, Path(folder) / "here")
        try:
            scenario.play()
        except BrokenError as broken:
            return str(broken), scenario.happened
        return "", scenario.happened


def give(part: list[tuple[str, str]]) -> list[str]:
    """Give some bad inputs to their verbs; return what is broken."""
    with tempfile.TemporaryDirectory(prefix="gc-", dir="/dev/shm") as folder:
        return broken_by(iter(part), Path(folder))


def main() -> int:
    """Play them; say what happened and what is broken."""
    runs = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    cores = len(os.sched_getaffinity(0))
    began = time.monotonic()
    happened: Counter[str] = Counter()
    broken = 0
    with ProcessPoolExecutor(cores) as pool:
        for found, counted in pool.map(play, range(first, first + runs), chunksize=2):
            happened += counted
            if found:
                broken += 1
                sys.stdout.write(f"{found}\n\n")
        pairs = list(every()) if runs > 1 else []
        parts = [pairs[start : start + 50] for start in range(0, len(pairs), 50)]
        wrong = [each for found in pool.map(give, parts) for each in found]
    for what, count in sorted(happened.items()):
        sys.stdout.write(f"{count:8} {what}\n")
    sys.stdout.writelines(f"{each}\n" for each in wrong)
    seconds = time.monotonic() - began
    sys.stdout.write(f"{len(pairs)} bad inputs: {len(wrong)} broke an invariant\n")
    sys.stdout.write(
        f"seeds {first}..{first + runs - 1}, {seconds:.0f} s: {broken} of {runs} runs broke an "
        "invariant\n"
    )
    return 1 if broken or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
