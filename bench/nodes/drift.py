"""How long `gcluster drift` takes on a local cluster of five nodes, and that it finds what differs.

Measured are whole processes: with new connections to the nodes, as in a nightly pipeline, and with
those that the last command left open. One node is then changed by hand, and found.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ..timing import Result, arguments, report, with_bytecode
from .local_up import NODES, run, spec_text

DRIFT_SECONDS = 2.0
ROUNDS = 5


def drift(spec: Path, environment: dict[str, str]) -> tuple[float, dict[str, Any]]:
    """Return the seconds of one `drift`, and its findings.

    Raises:
        RuntimeError: a node was unreachable.
    """
    gcluster = str(Path(sys.executable).parent / "gcluster")
    began = time.perf_counter()
    done = subprocess.run(
        [gcluster, "drift", str(spec), "--format", "json"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"gcluster drift ended with {done.returncode}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return seconds, answer


def again(spec: Path, environment: dict[str, str]) -> float:
    """Return the seconds of a run without open connections."""
    runtime = tempfile.mkdtemp(prefix="gd", dir="/dev/shm")  # short, as sockets need it
    try:
        return drift(spec, environment | {"XDG_RUNTIME_DIR": runtime})[0]
    finally:
        shutil.rmtree(runtime)


def measure(folder: Path, environment: dict[str, str]) -> tuple[list[float], list[float], int, int]:
    """Return the seconds of runs with new and with open connections, and each one's findings."""
    cluster = f"drift-{os.getpid()}"
    spec, log = folder / "drift.yaml", folder / "log"
    spec.write_text(spec_text(cluster), encoding="utf-8")
    try:
        run("up", str(spec), "--yes", log=log, environment=environment)
        cold = [again(spec, environment) for _ in range(ROUNDS)]
        runs = [drift(spec, environment) for _ in range(ROUNDS)]
        words = ["podman", "exec", f"gcluster-{cluster}-gpu002", "chmod", "0644"]
        subprocess.run([*words, "/etc/munge/munge.key"], check=True)
        _, changed = drift(spec, environment)
    finally:
        run("down", str(spec), "--yes", log=log, environment=environment)
    false = max(len(looked_up["drifts"]) for _, looked_up in runs)
    return cold, [seconds for seconds, _ in runs], false, len(changed["drifts"])


def main() -> int:
    """Measure, and report against the limit."""
    options = arguments(__doc__ or "").parse_args()
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        cold, warm, false, found = measure(Path(name), with_bytecode())
    many = f"{1 + NODES} nodes, median of {ROUNDS}"
    results = [
        Result(
            name=f"drift, connections opened again, {many}",
            value=statistics.median(cold),
            unit="s",
            limit=DRIFT_SECONDS,
        ),
        Result(
            name=f"drift, connections open, {many}",
            value=statistics.median(warm),
            unit="s",
            limit=DRIFT_SECONDS,
        ),
        Result(name="drift reported where there is none", value=false, unit="", limit=0),
        Result(name="changes made by hand that were missed", value=1 - found, unit="", limit=0),
    ]
    return report(
        "local cluster, looked at for drift", results, as_json=options.json, ratios=options.ratios
    )


if __name__ == "__main__":
    sys.exit(main())
