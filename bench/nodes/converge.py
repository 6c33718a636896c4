"""What a change costs the control machine, pushed and pulled: CPU seconds of `up` for each node.

One variable changes on every node of a cluster of few nodes and of one of more: the difference by
the difference in nodes is what a node costs. Reading ten thousand reports, which only a large
cluster has, is measured apart, on reports that are copies of one.
"""

from __future__ import annotations

import base64
import gzip
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from gcluster.lifecycle.operations.gitops.pull.reports import Report, parse

from ..timing import Result, arguments, report, with_bytecode

FEW, MORE = 1, 4
MANY = 10_000
STEPS = 40


def spec_text(name: str, mode: str, nodes: int, people: int) -> str:
    """Return a local cluster; one person more is the change."""
    users = "".join(f"  - {{name: person{n}, uid: {3000 + n}}}\n" for n in range(people))
    return f"""apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {nodes}}}
scheduler: {{type: slurm}}
converge: {mode}
users:
{users}"""


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return user and system time of a command and all that it waited for; raises when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=sys.stderr, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def change_costs(folder: Path, mode: str, environment: dict[str, str]) -> dict[int, float]:
    """Return nodes -> CPU seconds of the `up` that brings one more person to every node."""
    gcluster = str(Path(sys.executable).parent / "gcluster")
    spec = folder / "bench.yaml"
    name = f"bench-{mode}-{os.getpid()}"
    found = {}
    try:
        people = 1
        for nodes in (FEW, MORE):
            spec.write_text(spec_text(name, mode, nodes, people), encoding="utf-8")
            cpu_seconds([gcluster, "up", str(spec), "--yes"], environment)
            people += 1
            spec.write_text(spec_text(name, mode, nodes, people), encoding="utf-8")
            found[nodes] = cpu_seconds([gcluster, "up", str(spec), "--yes"], environment)
    finally:
        subprocess.run([gcluster, "down", str(spec), "--yes"], check=False, env=environment)
    return found


def reading_costs() -> float:
    """Return the CPU seconds of reading the reports of `MANY` nodes with `STEPS` stamps each."""
    stamps = {f"role{n}.configure": f"{n:064x}" for n in range(STEPS)}
    made = Report(
        node="gpu00001", pool="gpu", state="converged", serial=1, received=1, stamps=stamps
    )
    lines = [
        msgspec.json.encode(msgspec.structs.replace(made, node=f"gpu{n:05}")) for n in range(MANY)
    ]
    plain = b"\n".join([b"1", *lines, b"---", b""])
    text = base64.b64encode(gzip.compress(plain, 1)).decode()
    began = time.process_time()
    parse(text)
    return time.process_time() - began


def main() -> int:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--reports-only", action="store_true", help="start no clusters")
    options = parser.parse_args()
    results = [
        Result(
            name=f"reports of {MANY:,} nodes, read", value=reading_costs(), unit="s CPU", limit=2
        )
    ]
    with tempfile.TemporaryDirectory(prefix="gcluster-bench-") as name:
        for mode in () if options.reports_only else ("push", "pull"):
            costs = change_costs(Path(name), mode, with_bytecode())
            each = (costs[MORE] - costs[FEW]) / (MORE - FEW)
            results += [
                Result(name=f"{mode}: one change, {n} nodes", value=s, unit="s CPU")
                for n, s in costs.items()
            ]
            results.append(Result(name=f"{mode}: each node more", value=each, unit="s CPU"))
    return report("a change, control machine", results, as_json=options.json, ratios=options.ratios)


if __name__ == "__main__":
    sys.exit(main())
