"""How up, nothing to do, scale, drift and down grow: 500, 2,000 and 8,000 simulated nodes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..timing import Result, arguments, fitted_exponent, report, with_bytecode

SIZES = (500, 2_000, 8_000)
"""Of these `LIMITED` is the one whose seconds are judged."""
LIMITED = 2_000
PHASES = ("up", "nothing to do", "scale", "drift", "down")
LARGEST_MB = 500
LONGEST_S = {"up": 30.0, "nothing to do": 10.0, "scale": 20.0, "drift": 10.0, "down": 10.0}
LOST_OF_A_HUNDRED = 1
SPEC = """\
apiVersion: gcluster/v1
name: paper
sites:
  lab:
    provider: simulated
    faults: {{seed: 7, create_failure_rate: 0.01, boot_failure_rate: 0.005}}
pools:
  head: {{site: lab, role: controller}}
  train: {{site: lab, machine: sim.h100x8, count: {count}}}
scheduler: {{type: slurm}}
"""


def live(folder: Path, nodes: int) -> dict[str, float]:
    """Bring a cluster up, once more, a tenth larger, and down; return seconds and peak MB.

    Returned are each phase's seconds, those that it took on a core ("up, CPU"), and the peak.
    Before its end some nodes go away by themselves, and drift has to name those and no others.
    What has to be imported is, before the clock starts.
    """
    from gcluster.lifecycle.cluster.cluster import open_cluster  # noqa: PLC0415  # only the worker's
    from gcluster.lifecycle.cluster.outcome import Exit  # noqa: PLC0415
    from gcluster.lifecycle.cluster.progress import silent  # noqa: PLC0415
    from gcluster.lifecycle.cluster.sites import open_sites  # noqa: PLC0415
    from gcluster.lifecycle.down.down import down  # noqa: PLC0415
    from gcluster.lifecycle.status.drift.observe import find_drift  # noqa: PLC0415
    from gcluster.lifecycle.up.up import up  # noqa: PLC0415
    from gcluster.stacks.simulated.fleet import cloud  # noqa: PLC0415

    spec = folder / "cluster.yaml"

    def brought_up(count: int) -> Exit:
        spec.write_text(SPEC.format(count=count), encoding="utf-8")
        return up(open_cluster(str(spec)), silent, confirm=lambda _: True).exit_code

    def lose() -> set[str]:
        (site,) = open_sites(open_cluster(str(spec), running=True))
        here = cloud(site.context)
        there = {name: node.id for name, node in sorted(here.list().items()) if name != "head001"}
        lost = dict(list(there.items())[:: 100 // LOST_OF_A_HUNDRED])
        here.delete(lost.values())
        return set(lost)

    def drifted() -> Exit:
        found = find_drift(open_cluster(str(spec), running=True))
        return Exit.OK if {drift.name for drift in found.drifts} == lost else Exit.FAILED

    def taken_down() -> Exit:
        cluster = open_cluster(str(spec), running=True)
        return down(cluster, silent, confirm=lambda _: True).exit_code

    steps: dict[str, Callable[[], Exit]] = {
        "up": lambda: brought_up(nodes),
        "nothing to do": lambda: brought_up(nodes),
        "scale": lambda: brought_up(nodes + nodes // 10),
        "drift": drifted,
        "down": taken_down,
    }
    lost: set[str] = set()
    measured: dict[str, float] = {}
    for phase, step in steps.items():
        lost |= lose() if phase == "drift" else set()
        began, on_core = time.perf_counter(), time.process_time()
        code = step()
        measured[phase] = time.perf_counter() - began
        measured[f"{phase}, CPU"] = time.process_time() - on_core
        if code is not Exit.OK:
            sys.exit(f"{phase} of {nodes} nodes ended with {code.name}")
    # KiB from getrusage, as Linux counts it
    measured["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return measured


def in_fresh_process(nodes: int) -> dict[str, float]:
    """Run one size in a process and folders of its own."""
    with tempfile.TemporaryDirectory() as folder:
        own = {f"XDG_{name}_HOME": f"{folder}/{name}" for name in ("DATA", "CONFIG", "CACHE")}
        done = subprocess.run(
            [sys.executable, "-m", "bench.simulated.up", "--worker", f"{folder}:{nodes}"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**with_bytecode(), **own},
        )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> int:
    """Measure each size and fit the exponent of each phase."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--worker", help="FOLDER:NODES, measured in this process (internal)")
    options = parser.parse_args()
    if options.worker:
        folder, _, nodes = options.worker.rpartition(":")
        print(json.dumps(live(Path(folder), int(nodes))))
        return 0
    sizes = {nodes: in_fresh_process(nodes) for nodes in SIZES}
    results = [
        Result(
            name=f"{nodes:,} nodes: {phase}",
            value=sizes[nodes][phase],
            unit="s",
            limit=LONGEST_S[phase] if nodes == LIMITED else None,
        )
        for nodes in SIZES
        for phase in PHASES
    ]
    results += [
        Result(
            name=f"{nodes:,} nodes: peak memory",
            value=sizes[nodes]["peak_mb"],
            unit="MB",
            limit=LARGEST_MB if nodes == LIMITED else None,
        )
        for nodes in SIZES
    ]
    results += [
        Result(
            name=f"exponent over nodes: {phase}",
            value=fitted_exponent({nodes: sizes[nodes][f"{phase}, CPU"] for nodes in SIZES}),
            unit="",
            limit=1.15,
        )
        for phase in PHASES
    ]
    title = "simulated nodes, state in files, a fresh process a size"
    return report(title, results, as_json=options.json, ratios=options.ratios)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
