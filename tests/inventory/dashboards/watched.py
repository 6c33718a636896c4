"""A Prometheus that scrapes what exporters serve: node exporter is real, DCGM's is the double.

Slurm's figures are what the controllers' own program writes of recorded answers. What no machine of
the tests has, InfiniBand and NFS, comes from a file that says so.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args

import yaml
from tests.roles.programs import load_program

from gcluster.inventory.alerts import Condition, rule_file
from gcluster.inventory.waste import waste_group

ROOT = Path(__file__).parents[3]
METRICS = ROOT / "tests/cases/metrics"
RECORDED = ROOT / "molecule/slurm_exporter/recordings"
EVERYTHING = get_args(Condition)
NODE, POOL, JOB = "gpu001", "gpu", "106"
"""A node and a job of Slurm's recordings."""
EXPORTER = "prometheus-node-exporter"


def slurm_pages() -> str:
    """Return Slurm's figures, as roles/slurm_exporter writes them of recorded answers."""
    program = load_program(
        ROOT / "roles/slurm_exporter/files/libexec/slurm-metrics.py", "slurm_metrics_of_dashboards"
    )
    page = program.Page()
    answers = {
        tool: json.loads(
            (RECORDED / tool)
            .read_text(encoding="utf-8")
            .partition(f"$ {call}\n")[2]
            .partition("\n$ ")[0]
            .partition("\n== ")[0]
        )
        for tool, call in (("scontrol", "scontrol show nodes --json"), ("sdiag", "sdiag --json"))
    }
    program.of_nodes(page, answers["scontrol"]["nodes"])
    program.of_scheduler(page, answers["sdiag"]["statistics"])
    output = (METRICS / "squeue-24.11.5.txt").read_text(encoding="utf-8")
    held = program.of_jobs(page, program.rows(output), time.time())
    for account, gpus in held.items():
        page.add("gcluster_slurm_gpu_seconds_total", gpus, account=account)
    page.add("gcluster_slurm_up", 1)
    page.add("gcluster_slurm_dbd_up", 1)
    page.add("gcluster_slurm_preemptions_total", 3, qos="scavenger", account="nlp")
    return str(page.text())


def power_page() -> str:
    """Return a node's power, as roles/ipmi_exporter writes it of what freeipmi printed."""
    program = load_program(
        ROOT / "roles/ipmi_exporter/files/libexec/ipmi-metrics.py", "ipmi_metrics_of_dashboards"
    )
    said = (ROOT / "molecule/ipmi_exporter/recordings/ipmi-dcmi").read_text(encoding="utf-8")
    return str(program.page(said.partition("\n== ")[0]))


def lustre_page() -> str:
    """Return a node's Lustre clients, as roles/node_exporter writes them of what lctl prints."""
    program = load_program(
        ROOT / "roles/node_exporter/files/libexec/lustre-metrics.py", "lustre_metrics_of_dashboards"
    )
    return str(program.page((METRICS / "lustre-lctl.txt").read_text(encoding="utf-8")))


def gpu_page(folder: Path) -> str:
    """Return what the double of DCGM exporter serves of 8 GPUs, two of them held by a job."""
    role = ROOT / "roles/dcgm_exporter/files"
    double = load_program(role / "libexec/dcgm-double.py", "dcgm_double_of_dashboards")
    jobs = folder / "jobs"
    jobs.mkdir(exist_ok=True)
    for gpu in (0, 1):
        (jobs / str(gpu)).write_text(f"{JOB}\n")
    rows = double.fields((role / "counters.csv").read_text(encoding="utf-8"))
    gpus = double.Gpus(8, 700.0, folder, str(jobs))
    return str(double.page(gpus, rows, "H100", str(jobs)))


@contextmanager
def served(text: str) -> Iterator[int]:
    """Serve a text as metrics; yield the port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server's name
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Write no line for each scrape."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()


@contextmanager
def process(folder: Path, *command: str) -> Iterator[None]:
    """Run a program in a folder until the end; what it says is in a file there."""
    found = shutil.which(command[0])
    assert found is not None, f"make test-alerts brings {command[0]}"
    with (folder / f"{command[0]}.log").open("wb") as log:
        started = subprocess.Popen([found, *command[1:]], cwd=folder, stdout=log, stderr=log)
    try:
        yield
    finally:
        started.terminate()
        started.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Prometheus:
    """One that runs, over plain HTTP on this machine's loopback address."""

    def __init__(self, port: int) -> None:
        """Take its port."""
        self.port = port

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of its API."""
        words = urllib.parse.urlencode(parameters)
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{words}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def values(self, query: str) -> list[dict[str, Any]]:
        """Return the series of a query now."""
        found: list[dict[str, Any]] = self.get("query", query=query)["result"]
        return found


@contextmanager
def watched(folder: Path) -> Iterator[Prometheus]:
    """Run exporters and a Prometheus that has scraped each a few times, a second apart."""
    with ExitStack() as stack:
        pages = folder / "textfiles"
        pages.mkdir()
        (pages / "slurm.prom").write_text(slurm_pages())
        shutil.copy(METRICS / "hardware-1.9.0.txt", pages / "hardware.prom")
        (pages / "ipmi.prom").write_text(power_page())
        (pages / "lustre.prom").write_text(lustre_page())
        node, port = free_port(), free_port()
        arguments = [
            f"--web.listen-address=127.0.0.1:{node}",
            f"--collector.textfile.directory={pages}",
            "--no-collector.infiniband",
        ]
        stack.enter_context(process(folder, EXPORTER, *arguments))
        gpu = stack.enter_context(served(gpu_page(folder)))
        labels = {"instance": NODE, "pool": POOL, "site": "hall"}
        group = waste_group({POOL: 20.0}, EVERYTHING) | {"interval": "1s"}
        (folder / "rules.yml").write_text(rule_file(EVERYTHING, recorded=group))
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {
                    "job_name": job,
                    "static_configs": [{"targets": [f"127.0.0.1:{at}"], "labels": labels}],
                }
                for job, at in (("node", node), ("gpu", gpu))
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        serving = [
            "--config.file=prometheus.yml",
            f"--web.listen-address=127.0.0.1:{port}",
            "--storage.tsdb.path=data",
        ]
        stack.enter_context(process(folder, "prometheus", *serving))
        found = Prometheus(port)
        wait_for(lambda: len(found.values("count_over_time(gcluster:job_usd_per_hour[1m]) > 3")))
        yield found


def wait_for(holds: Any, *, seconds: int = 30) -> None:
    for _ in range(5 * seconds):
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"Prometheus has no recorded metric after {seconds} s")
