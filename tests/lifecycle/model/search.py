"""Searches random runs of the model on all cores: `make test-model`, FOR=100000 for more.

Every run is a sequence of faults against one cluster. Each core has a seed of its own, said in
the end, so that what was found can be found again.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from .machine import Runs

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 8
"""Runs and mishaps of a run before the site's faults end."""


@contextmanager
def own_places() -> Iterator[None]:
    """Give gcluster folders of its own, in memory, while the body runs."""
    with tempfile.TemporaryDirectory(prefix="gc-", dir="/dev/shm") as folder:
        names = {f"XDG_{name}_HOME": f"{folder}/{name}" for name in ("DATA", "CONFIG", "CACHE")}
        with patch.dict(os.environ, {**names, "XDG_RUNTIME_DIR": folder, "TMPDIR": folder}):
            tempfile.tempdir = None
            try:
                yield
            finally:
                tempfile.tempdir = None


def emit(runs: int, number: int, *, shrinks: bool = True) -> Counter[str]:
    """Make so many runs by this seed; return what happened in them.

    Raises:
        Broken: a law doesn't hold; hypothesis says in which run.
    """
    Runs.counts = Counter()
    phases = [Phase.generate, *([Phase.shrink] if shrinks else [])]
    chosen = settings(
        max_examples=runs,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    with own_places():
        run_state_machine_as_test(seed(number)(Runs), settings=chosen)  # type: ignore[no-untyped-call]
    return Runs.counts


def main() -> int:
    """Make the runs; exit non-zero when a law didn't hold."""
    wanted = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    cores = len(os.sched_getaffinity(0))
    share = -(-wanted // cores)
    began = time.monotonic()
    with ProcessPoolExecutor(cores) as pool:
        futures = [pool.submit(emit, share, first + core) for core in range(cores)]
        counts: Counter[str] = Counter()
        for future in futures:
            counts += future.result()
    for what, count in sorted(counts.items()):
        sys.stdout.write(f"{count:8} {what}\n")
    seconds = time.monotonic() - began
    sys.stdout.write(f"seeds {first}..{first + cores - 1}, {seconds:.0f} s: all laws held\n")
    return 0 if counts["runs"] >= wanted else 1


if __name__ == "__main__":
    sys.exit(main())
