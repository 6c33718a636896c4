"""`gcluster dashboard` of simulated clusters: seconds on a core for the page's answer, its size.

The cluster's Prometheus is a double that answers the page's own queries at once: what is measured
is everything that gcluster does with its answers. How fast the page draws is tried in Chromium by
make test-dashboard.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gcluster.inventory.dashboards import findings
from gcluster.lifecycle.status.dashboard.answers import _ALERT as ALERTS
from gcluster.lifecycle.status.dashboard.answers import Answers
from gcluster.lifecycle.status.dashboard.server import DashboardServer
from gcluster.lifecycle.status.waste.now import _QUERIES as NOW
from gcluster.lifecycle.status.waste.prometheus import Query, QueryPrometheus

from ..timing import Result, arguments, fitted_exponent, report

HOSTILE = "<img src=x onerror=alert(1)>\"}'\n</script>"
"""What a user calls a job."""
GPUS = 8
EVERY_DRAINED, EVERY_DOWN, EVERY_SILENT, EVERY_IDLE = 97, 331, 523, 7
"""Of nodes: one in so many."""
NODES_PER_JOB = 4
USD = 40.0
SIZES = (250, 500, 1000, 2000, 4000)
MOST = 2000
SECONDS, MEGABYTES = 1.0, 2.0
EXPONENT = 1.3
"""Answers of many nodes outgrow the processor's caches: 9 µs a node of 250, 17 of 8,000."""
FRAME_MS = 16.0
"""A picture of 60 in a second."""
_ROUNDS = 9
TESTS = Path(__file__).parents[2] / "tests/dashboard"


def simulated(nodes: int) -> QueryPrometheus:
    """Return a double of a Prometheus of a cluster with so many nodes of 8 GPUs, and a login."""
    known = {each.query: places for each in findings().next if (places := holds(each.name))}
    known |= {query: list(samples(name, nodes)) for name, query in NOW.items()}
    known |= {query: list(samples(name, nodes)) for name, query in ALERTS.items()}
    slow = {each.query.partition("$job")[0]: holds(each.name) for each in findings().slow}

    def instant(query: str) -> list[Any]:
        if query in known:
            return known[query]
        return next((places for start, places in slow.items() if query.startswith(start)), [])

    def query(queries: Sequence[Query]) -> list[Any]:
        return [
            success(lines(parameters) if path == "query_range" else instant(parameters["query"]))
            for path, parameters in queries
        ]

    return query


def holds(name: str) -> list[Any]:
    """Return where a finding holds: one GPU of a job is slow, one disk fills, one link flaps."""
    where = {"instance": "gpu0003", "gpu": "3"}
    return {
        "straggler": [sample(where, 0.27)],
        "hot": [sample(where, 0.4)],
        "disk-fills": [sample({"instance": "login01", "mountpoint": "/home"}, 0.06)],
        "ib-flaps": [sample({"instance": "gpu0041", "device": "mlx5_2", "port": "1"}, 3)],
    }.get(name, [])


def success(result: list[Any]) -> dict[str, Any]:
    """Return an answer of Prometheus'."""
    return {"status": "success", "data": {"result": result}}


SIZE = {
    "usd": 9000.0,
    "TEMP": 64.0,
    "POWER": 560.0,
    "CLOCK": 0.95,
    "up{": 2000.0,
    "_bytes": 12e9,
    "PCIE": 6e9,
    "jobs": 400.0,
}
"""A part of a query -> about what its value is; else 0.8."""


def lines(span: dict[str, str]) -> list[Any]:
    """Return the series of a query over a time: four of them, one if it adds all up."""
    start, end, step = (float(span[key]) for key in ("start", "end", "step"))
    query = span["query"]
    times = [start + step * n for n in range(int((end - start) / step) + 1)]
    size = next((value for part, value in SIZE.items() if part in query), 0.8)
    number = 4 if any(word in query for word in (" by ", "{", "topk", "rate(")) else 1
    return [
        {"metric": labels_of_line(at), "values": [[t, str(level(at, t, size))] for t in times]}
        for at in range(number)
    ]


def level(at: int, time_s: float, size: float) -> float:
    """Return a line's value; the fourth one falls to a third two hours before the end."""
    waves = 0.9 + 0.06 * math.sin(time_s / 2700 + at) + 0.03 * math.sin(time_s / 311 + 7 * at)
    return size * waves * (0.35 if at == 3 and time_s > time.time() - 7200 else 1)  # noqa: PLR2004


def labels_of_line(at: int) -> dict[str, str]:
    """Return labels for the legends of all panels."""
    one_of = {
        "account": ("nlp", "vision", "speech", HOSTILE),
        "user": ("ada", "bob", "eve", "max"),
        "mode": ("user", "system", "iowait", "irq"),
        "device": ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"),
        "mountpoint": ("/", "/home", "/scratch", "/var"),
        "state": ("idle", "drained", "down", "reserved"),
        "reason": ("Resources", "Priority", "Dependency", "QOSMaxGRESPerUser"),
        "pool": ("gpu", "big", "login", "head"),
    }
    chosen = {label: values[at] for label, values in one_of.items()}
    return chosen | {"instance": f"gpu{at:04}", "gpu": str(at), "partition": chosen["pool"]}


def samples(name: str, nodes: int) -> Iterator[dict[str, Any]]:
    """Yield the series of one of the queries."""
    busy = [at for at in range(nodes) if at % EVERY_IDLE]
    jobs = range(0, len(busy), NODES_PER_JOB)
    per_job = {
        "start": time.time() - 7200,
        "held": GPUS * NODES_PER_JOB,
        "active": GPUS * NODES_PER_JOB * 0.6,
        "tensor": GPUS * NODES_PER_JOB * 0.3,
        "idle": 0,
        "untouched": 0,
        "usd": USD * NODES_PER_JOB,
        "wasted": USD * NODES_PER_JOB * 0.4,
        "jobs": GPUS * NODES_PER_JOB,
    }
    if name in per_job:
        for number, at in enumerate(jobs):
            labels = {
                "hpc_job": str(1000 + at),
                "account": f"a{number % 9}",
                "user": f"u{number % 40}",
            }
            labels |= {"pool": "gpu", "job_name": HOSTILE if number == 1 else f"train-{number}"}
            worse = 1.5 if name == "wasted" and number < 3 else 1  # noqa: PLR2004  # the first ones
            yield sample(labels, per_job[name] * worse)
    elif name in {"slurm", "double"}:
        yield sample({}, 1)
    elif name.startswith("link_"):
        yield sample({"instance": "gpu0041", "device": "mlx5_2", "port": "1"}, 3)
    elif name in {"alerts", "since"}:
        state = {} if name == "since" else {"alertstate": "firing"}
        for at in range(0, nodes, EVERY_DOWN):
            labels = {"alertname": "NodeDown", "severity": "critical", "instance": f"gpu{at:04}"}
            yield sample(labels | state, 1 if state else time.time() - 300)
    else:
        yield from of_nodes(name, nodes, set(busy))


def of_nodes(name: str, nodes: int, busy: set[int]) -> Iterator[dict[str, Any]]:
    """Yield the series of a query of nodes."""
    one_in = {"drained": EVERY_DRAINED, "down": EVERY_DOWN, "silent": EVERY_SILENT}
    for at in range(nodes):
        labels = {"instance": f"gpu{at:04}", "pool": "gpu" if at % 3 else "big"}
        value = {
            "gpus": GPUS,
            "node_usd": USD,
            "free": 0 if at in busy else 1,
            "node_active": 0.1 + 0.8 * (at % 17) / 17,
        }.get(name, 1.0)
        if name == "unused" and at not in busy:
            yield sample(labels | {"state": "idle"}, USD)
        elif name not in {"unused", "reserved"} and at % one_in.get(name, 1) == 0:
            yield sample(labels, value)
    if name == "nodes":
        yield sample({"instance": "login01", "pool": "login"}, 1)


def sample(labels: dict[str, str], value: float) -> dict[str, Any]:
    """Return one series of an answer."""
    return {"metric": labels, "value": [0, str(value)]}


def seconds(nodes: int) -> float:
    """Return the least of the seconds on a core from Prometheus' answers to the page's."""
    query, found = simulated(nodes), []
    for _ in range(_ROUNDS):
        begin = time.process_time()
        Answers("lab", query).overview()
        found.append(time.process_time() - begin)
    return min(found)


def drawing() -> list[Result]:
    """Return how long the page takes to draw all nodes again, where make test-dashboard has run."""
    chromium = shutil.which("chromium")
    if chromium is None or not (TESTS / "node_modules").is_dir():
        return []
    points = {nodes: milliseconds(nodes, chromium) for nodes in SIZES}
    most = MOST
    return [
        Result(name=f"{most:,} nodes: drawn again", value=points[most], unit="ms", limit=FRAME_MS),
        Result(name="exponent of drawing", value=fitted_exponent(points), unit="", limit=EXPONENT),
    ]


def milliseconds(nodes: int, chromium: str) -> float:
    """Return the time between two keys that choose a node: everything is drawn for each."""
    keys = """() => { const grid = document.getElementById("grid"), begin = performance.now();
      const key = () => new KeyboardEvent("keydown", {key: "ArrowRight"});
      for (let n = 0; n < 200; n++) grid.dispatchEvent(key());
      grid.getContext("2d").getImageData(0, 0, 1, 1); return (performance.now() - begin) / 200; }"""
    server = DashboardServer(Answers("lab", simulated(nodes)), 3600)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    steps = [{"width": 1280, "height": 900, "goto": "", "evaluate": f"({keys})()"}]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"url": server.url, "chromium": chromium, "steps": steps}, file)
        file.flush()
        command = ["node", "browse.mjs", file.name]
        done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    server.shutdown()
    return float(json.loads(done.stdout)["values"][0])


def main() -> int:
    """Measure and report."""
    requested = arguments(__doc__ or "").parse_args()
    seconds(SIZES[0])  # reads the tables
    points = {nodes: seconds(nodes) for nodes in SIZES}
    most = MOST
    megabytes = len(Answers("lab", simulated(most)).overview()) / 1e6
    results = [
        Result(name=f"{most:,} nodes: the answer", value=points[most], unit="s", limit=SECONDS),
        Result(name=f"{most:,} nodes: its size", value=megabytes, unit="MB", limit=MEGABYTES),
        Result(name="exponent over nodes", value=fitted_exponent(points), unit="", limit=EXPONENT),
    ]
    results += drawing()
    return report("the dashboard", results, as_json=requested.json, ratios=requested.ratios)


if __name__ == "__main__":
    raise SystemExit(main())
