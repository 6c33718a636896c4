"""How long one more node takes on a running local cluster, from the image that was baked for it.

`gcluster image` bakes the install phases; then a cluster of one node gets a second one. Measured is
the time from the start of `gcluster up` until Slurm calls the new node idle, which is when jobs
start there; the AllReduce over all nodes, which `up` continues with, is not part of it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..timing import Result, arguments, report, with_bytecode
from .local_up import run, spec_text

JOIN_SECONDS = 10.0
GIVE_UP_SECONDS = 120.0
POLL_SECONDS = 0.1


def wait_until_idle(cluster: str, node: str) -> None:
    """Return when Slurm calls a node idle.

    One process in the controller polls, so that waiting takes almost no CPU time.

    Raises:
        RuntimeError: it was not in time.
    """
    asks = f"sinfo --noheader --nodes={node} --format=%T"
    loop = f'until [ "$({asks})" = idle ]; do sleep {POLL_SECONDS}; done'
    words = ["podman", "exec", f"gcluster-{cluster}-head"]
    words += ["timeout", f"{GIVE_UP_SECONDS:.0f}", "sh", "-c", loop]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        raise RuntimeError(f"{node} was not idle after {GIVE_UP_SECONDS:.0f} s")


def join(spec: Path, cluster: str, nodes: int, environment: dict[str, str]) -> float:
    """Request so many nodes; return the seconds until the last one is idle.

    Raises:
        RuntimeError: it never was, or `up` failed.
    """
    spec.write_text(spec_text(cluster, nodes), encoding="utf-8")
    gcluster = str(Path(sys.executable).parent / "gcluster")
    began = time.perf_counter()
    with (spec.parent / "join.log").open("w") as log:
        up = subprocess.Popen(
            [gcluster, "up", str(spec), "--yes"], stdout=log, stderr=log, env=environment
        )
        try:
            wait_until_idle(cluster, f"gpu{nodes:03d}")
        except BaseException:
            up.terminate()
            up.wait()
            raise
        seconds = time.perf_counter() - began
        if up.wait():
            raise RuntimeError((spec.parent / "join.log").read_text(encoding="utf-8"))
    return seconds


def measure(folder: Path, environment: dict[str, str], rounds: int) -> tuple[float, list[float]]:
    """Return the seconds of the bake, and those of each node that joined."""
    cluster = f"join-{os.getpid()}"
    spec, log = folder / "join.yaml", folder / "log"
    spec.write_text(spec_text(cluster, 1), encoding="utf-8")
    try:
        baked = run("image", str(spec), log=log, environment=environment)
        run("up", str(spec), "--yes", log=log, environment=environment)
        joins = [join(spec, cluster, 2 + turn, environment) for turn in range(rounds)]
        print((folder / "join.log").read_text(encoding="utf-8"), file=sys.stderr)
    finally:
        run("down", str(spec), "--yes", log=log, environment=environment)
    return baked, joins


def main() -> int:
    """Measure, and report against the limit."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=3, help="nodes that join, one after another")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        baked, joins = measure(Path(name), with_bytecode(), options.rounds)
    results = [
        Result(name="gcluster image (0 where it was there)", value=baked, unit="s", limit=200.0),
        Result(
            name=f"up until a new node is idle, median of {len(joins)}",
            value=statistics.median(joins),
            unit="s",
            limit=JOIN_SECONDS,
        ),
    ]
    return report(
        "local cluster, node from a baked image",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


if __name__ == "__main__":
    sys.exit(main())
