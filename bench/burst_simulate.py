"""How long `gcluster burst simulate` takes for a trace of 100,000 jobs, in a cold process."""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .timing import Result, arguments, cpu_seconds, fitted_exponent, report, with_bytecode

JOBS = 100_000
FEWER = 25_000
SECONDS = 60.0
SIZES = (64, 1_024)
"""Nodes of the site."""
GPUS = 8
LOAD = 0.95
"""Of the site by the jobs alone: queues form, and jobs spill."""


def spec(nodes: int) -> str:
    """Return a spec of a site of so many nodes that spills to a pool a quarter of its size."""
    return f"""apiVersion: gcluster/v1
name: bench
sites:
  campus:
    provider: bare-metal
    ssh: {{user: ops, key: ~/.ssh/id_ed25519}}
    network: {{cidr: 10.20.0.0/16}}
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {{admin_cidrs: [192.0.2.0/24]}}
links: [{{between: [campus, east], via: vpn}}]
pools:
  head: {{site: campus, role: controller, hosts: head01}}
  train:
    site: campus
    machine: hgx-h100-8
    fabric: infiniband-ndr
    hosts: "gpu[0001-{nodes:04d}]"
  spill: {{site: east, machine: p5.48xlarge, count: {{min: 0, max: {nodes // 4}}}}}
scheduler:
  type: slurm
  partitions:
    train:
      pools: [train]
      default: true
      max_time: 7d
      spill:
        to: spill
        after: 30m
        max_usd_per_hour: {nodes * 12}
        max_usd_per_day: {nodes * 200}
smoke: {{allreduce: {{floor: 340 GB/s}}}}
"""


def write_trace(path: Path, nodes: int, jobs: int) -> None:
    """Write a synthetic trace: sizes in powers of two, lognormal run times, limits well above."""
    chance = random.Random(20_261_122)  # noqa: S311  # a workload, the same each time
    made = []
    for _ in range(jobs):
        size = min(2 ** min(int(chance.expovariate(0.7)), 6), nodes // 2) * GPUS
        if chance.random() < 0.3:  # noqa: PLR2004  # a share of the jobs takes part of a node
            size = chance.choice((1, 2, 4))
        run = min(chance.lognormvariate(8.0, 1.4), 6 * 86400)
        made.append((size, run, min(run * chance.choice((1.2, 2, 5)) + 600, 7 * 86400)))
    node_s = sum(-(-size // GPUS) * run for size, run, _limit in made)
    rate = jobs / (node_s / (nodes * LOAD))
    at = 0.0
    with path.open("w", encoding="utf-8") as trace:
        trace.write("; Version: 2.2\n; UnixStartTime: 1767225600\n")
        for number, (size, run, limit) in enumerate(made, start=1):
            at += chance.expovariate(rate)
            trace.write(
                f"{number} {at:.0f} -1 {run:.0f} {size} -1 -1 {size} {limit:.0f} -1 1 "
                f"{number % 50} {number % 7} -1 1 1 -1 -1\n"
            )


def main() -> int:
    """Write traces and measure."""
    options = arguments(__doc__ or "").parse_args()
    gcluster = shutil.which("gcluster", path=str(Path(sys.executable).parent))
    if gcluster is None:
        sys.exit("gcluster is not installed for this Python: run make setup")
    results = []
    for nodes in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            trace, cluster = Path(folder, "trace.swf"), Path(folder, "cluster.yaml")
            write_trace(trace, nodes, JOBS)
            cluster.write_text(spec(nodes), encoding="utf-8")
            command = [gcluster, "burst", "simulate", str(cluster), str(trace)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.perf_counter()
            subprocess.run(
                command,
                check=True,
                stdout=subprocess.DEVNULL,
                env=with_bytecode(),
            )
            seconds = time.perf_counter() - began
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            write_trace(trace, nodes, FEWER)
            fewer = cpu_seconds(command)
        name = f"{JOBS:,} jobs, a site of {nodes:,} nodes"
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        results += [
            Result(name=name, value=seconds, unit="s"),
            Result(name="  of that on a core", value=used, unit="s", limit=SECONDS),
            Result(name="  peak memory", value=after.ru_maxrss / 1024, unit="MiB"),
            Result(
                name="  exponent over jobs",
                value=fitted_exponent({FEWER: fewer, JOBS: used}),
                unit="",
                limit=1.15
                if nodes == SIZES[-1]
                else None,  # the other's queue grows with the trace
            ),
        ]
    return report(
        "replaying a trace, with the policy and without",
        results,
        as_json=options.json,
        ratios=options.ratios,
    )


if __name__ == "__main__":
    sys.exit(main())
