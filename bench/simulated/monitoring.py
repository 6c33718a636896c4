"""A real Prometheus with the compiled rules, of simulated nodes: do scrapes and rules keep up?

Each simulated node is two targets: the page of a real node exporter, and that of the double of DCGM
exporter with 8 GPUs, each held by a job of its own. The first node serves Slurm's figures of all
jobs too. One process serves all pages.

    PATH=$(.ci/prometheus):$PATH python -m bench.simulated.monitoring --nodes 2000 --minutes 5

Of 2,000 nodes Prometheus takes 9 GiB. Rules that read an hour or a day read what there is: minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import Process
from pathlib import Path

import yaml
from tests.inventory.dashboards.watched import (
    EXPORTER,
    JOB,
    ROOT,
    Prometheus,
    free_port,
    gpu_page,
    process,
    wait_for,
)
from tests.roles.programs import load_program

from gcluster.inventory.alerts import Condition, rule_file
from gcluster.inventory.waste import waste_group

from ..timing import Result, arguments, fitted_exponent, report

HAS: tuple[Condition, ...] = (
    "slurm",
    "nvidia",
    "gpus",
    "clock",
    "units",
    "waste_alert",
    "hour_budget",
    "month_budget",
)
SIZES = (100, 400)
MINUTES = 1.5
SETTLES_S = 75
"""Seconds until every target was scraped and every group evaluated, a minute apart."""
USD = 20.0
_TYPE = "text/plain; version=0.0.4"
SCRAPE_S = 5.0
"""Seconds after which a scrape is given up."""
EXPONENT = 1.2
_JOBS = 5000
"""Jobs that Slurm has: one a node runs, the others wait."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What a Prometheus of so many simulated nodes did."""

    nodes: int
    up: float
    """Share of targets."""
    longest_scrape_s: float
    used: dict[str, float]
    """Group of rules -> the largest share of its interval that it took."""
    missed: float
    failed: float
    cores: float
    peak_gib: float


def node_page(folder: Path) -> bytes:
    """Return what a real node exporter serves of this machine."""
    port = free_port()
    with process(folder, EXPORTER, f"--web.listen-address=127.0.0.1:{port}"):
        wait_for(lambda: _page(port))
        return _page(port)


def _page(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return bytes(answer.read())


def slurm_page(nodes: int) -> bytes:
    """Return Slurm's figures of nodes with a job each, and of jobs that wait."""
    program = load_program(
        ROOT / "roles/slurm_exporter/files/libexec/slurm-metrics.py", "slurm_metrics_of_bench"
    )
    page, now = program.Page(), time.time()
    node = {"state": ["MIXED"], "cpus": 96, "alloc_cpus": 48, "tres": "cpu=96,gres/gpu=8"}
    node |= {"tres_used": "cpu=48,gres/gpu=2", "real_memory": 1_000_000, "alloc_memory": 1}
    program.of_nodes(page, [{"name": name(at), **node} for at in range(nodes)])
    job = {"qos": "normal", "partition": "main", "eligible": "1", "cpus": "48", "nodes": "1"}
    running = {"state": "RUNNING", "reason": "None", "start": str(int(now) - 9000)}
    waiting = {"state": "PENDING", "reason": "Resources", "start": "N/A", "tres": ""}
    jobs = [
        job
        | {"id": str(at), "account": f"a{at % 40}", "user": f"u{at % 200}", "name": f"j{at}"}
        | (running | {"tres": "cpu=48,gres/gpu=2"} if at < nodes else waiting)
        for at in range(max(nodes, _JOBS))
    ]
    program.of_jobs(page, jobs, now)
    page.add("gcluster_slurm_up", 1)
    return str(page.text()).encode()


def name(at: int) -> str:
    """Return a node's name."""
    return f"gpu{at:04}"


def serve(port: int, node: bytes, slurm: bytes, gpus: str) -> None:
    """Serve all nodes' pages: /node/7 and /gpu/7, whose job is 7.

    It shares the cores with the Prometheus that is measured, so each page is made once.
    """
    parts = gpus.split(f'hpc_job="{JOB}"')

    @cache
    def page(path: str) -> bytes:
        _, kind, at = path.split("/")
        if kind == "gpu":
            body = f'hpc_job="{at}"'.join(parts).encode()
        else:
            body = node + (slurm if at == "0" else b"")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError), closing(writer):
            while True:  # until Prometheus closes the connection, which it keeps
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(page(request.split(b" ", 2)[1].decode()))
                await writer.drain()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=4096)
        await server.serve_forever()

    asyncio.run(run())


def write_settings(folder: Path, nodes: int, port: int, own: int) -> None:
    """Write Prometheus' settings, its rules as they are compiled, and the targets."""
    recorded = waste_group({"gpu": USD}, HAS)
    (folder / "rules.yml").write_text(rule_file(HAS, recorded=recorded))
    for kind in ("node", "gpu"):
        targets = [
            {
                "targets": [f"127.0.0.1:{port}"],
                "labels": {
                    "instance": name(at),
                    "pool": "gpu",
                    "site": "hall",
                    "__metrics_path__": f"/{kind}/{at}",
                },
            }
            for at in range(nodes)
        ]
        (folder / f"{kind}.json").write_text(json.dumps(targets))
    settings = {
        "global": {
            "scrape_interval": "15s",
            "scrape_timeout": f"{SCRAPE_S:g}s",
            "evaluation_interval": "15s",
        },
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            *(
                {"job_name": kind, "file_sd_configs": [{"files": [f"{kind}.json"]}]}
                for kind in ("node", "gpu")
            ),
            {"job_name": "prometheus", "static_configs": [{"targets": [f"127.0.0.1:{own}"]}]},
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))


@contextmanager
def scraped(folder: Path, nodes: int) -> Iterator[tuple[Prometheus, int]]:
    """Run a Prometheus that scrapes so many nodes; yield it and its process id."""
    port, own = free_port(), free_port()
    pages = node_page(folder), slurm_page(nodes), gpu_page(folder)
    write_settings(folder, nodes, port, own)
    pages_served = Process(target=serve, args=(port, *pages), daemon=True)
    pages_served.start()
    with ExitStack() as stack:
        stack.callback(pages_served.join)
        stack.callback(pages_served.kill)
        command = ["--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{own}"]
        stack.enter_context(process(folder, "prometheus", *command, "--storage.tsdb.path=data"))
        found = Prometheus(own)
        wait_for(lambda: found.values("prometheus_build_info"), seconds=120)
        yield found, pid_of(own)


def pid_of(port: int) -> int:
    """Return the process of the Prometheus that listens on a port."""
    wanted = f"--web.listen-address=127.0.0.1:{port}".encode()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if wanted in command.read_bytes().split(b"\0"):
                return int(command.parent.name)
        except OSError:
            continue
    raise AssertionError("Prometheus has ended")


def cpu_s(pid: int) -> float:
    """Return the seconds that a process has used on cores (proc_pid_stat(5), 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_gib(pid: int) -> float:
    """Return the most memory that a process held."""
    [kib] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kib) / 2**20


def measure(nodes: int, minutes: float) -> Watched:
    """Watch so many simulated nodes for some minutes."""
    with tempfile.TemporaryDirectory() as made, scraped(Path(made), nodes) as (found, pid):
        time.sleep(SETTLES_S)
        begin, used = time.monotonic(), cpu_s(pid)
        time.sleep(60 * minutes)
        cores = (cpu_s(pid) - used) / (time.monotonic() - begin)
        span = f"[{round(60 * minutes)}s]"

        def value(query: str) -> float:
            return float(found.values(query)[0]["value"][1])

        shares = {
            each["metric"]["rule_group"].rpartition(";")[2]: float(each["value"][1])
            for each in found.values(
                f"max_over_time(prometheus_rule_group_last_duration_seconds{span})"
                " / prometheus_rule_group_interval_seconds"
            )
        }
        return Watched(
            nodes=nodes,
            up=value('sum(up{job!="prometheus"})') / (2 * nodes),
            longest_scrape_s=value(f"max(max_over_time(scrape_duration_seconds{span}))"),
            used=shares,
            missed=value(f"sum(increase(prometheus_rule_group_iterations_missed_total{span}))"),
            failed=value("sum(prometheus_rule_evaluation_failures_total)"),
            cores=cores,
            peak_gib=peak_gib(pid),
        )


def results_of(one: Watched) -> list[Result]:
    """Return the figures of one size."""
    of = f"{one.nodes:,} nodes:"
    return [
        Result(name=f"{of} share of targets that are lost", value=1 - one.up, unit="", limit=0),
        Result(name=f"{of} longest scrape", value=one.longest_scrape_s, unit="s", limit=SCRAPE_S),
        *(
            Result(name=f"{of} of its interval, {group}", value=share, unit="x", limit=1)
            for group, share in sorted(one.used.items())
        ),
        Result(name=f"{of} turns of rules missed", value=one.missed, unit="", limit=0),
        Result(name=f"{of} rules failed", value=one.failed, unit="", limit=0),
        Result(name=f"{of} Prometheus", value=one.cores, unit="cores"),
        Result(name=f"{of} its memory", value=one.peak_gib, unit="GiB"),
    ]


def main() -> int:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--nodes", type=int, help="one size instead of two and how they grow")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time to watch each size")
    requested = parser.parse_args()
    sizes = SIZES if requested.nodes is None else (requested.nodes,)
    found = [measure(nodes, requested.minutes) for nodes in sizes]
    results = [result for one in found for result in results_of(one)]
    if len(found) > 1:
        grown = fitted_exponent({one.nodes: one.cores for one in found})
        results.append(
            Result(name="exponent of Prometheus' cores", value=grown, unit="", limit=EXPONENT)
        )
    title = "monitoring of simulated nodes"
    return report(title, results, as_json=requested.json, ratios=requested.ratios)


if __name__ == "__main__":
    raise SystemExit(main())
