"""The collector on the controller: takes nodes' reports, and drains nodes through Slurm jobs.

A report is a MUNGE credential of a root of this cluster. The newest of each node is one file, which
`gcluster up` reads. For a node that waits, Slurm gets one job that takes all of it and one of its
pool's licences: Slurm alone decides when. After too many failures of one bundle no other is
submitted.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from self_converge import munge, slurm
from self_converge.settings import GRANTED_UNIT, JOB_PREFIX, read_json, write_atomically

REPORTS = Path("/var/lib/gcluster/reports")
SILENT = REPORTS / "collector.silent"
"""Why nothing is submitted to Slurm, where that is so: `up` shows it while nodes wait."""
PUBLISHED = Path("/srv/gcluster/package-mirror/converge")
SETTINGS = Path("/etc/gcluster/converge-collector.json")
TURN_S = 2.0
FORBIDDEN = 403
LONGEST_REPORT = 1 << 20
MOST_QUEUED = 500
"""Jobs of a pool in the queue at once: slurmctld holds 10,000 in all by default (MaxJobCount)."""
FIRST_OF_ALL = 4294967293
"""Highest priority that sbatch takes (NO_VAL - 1): the next free moment of the node is ours."""

_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


class Job(NamedTuple):
    """What holds a node for its change, or will."""

    number: str
    pending: bool


class Collector:
    """The current reports, and the Slurm jobs for them."""

    def __init__(self) -> None:
        """Read the reports that an earlier collector wrote."""
        self._reports: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        REPORTS.mkdir(mode=0o755, parents=True, exist_ok=True)
        for path in REPORTS.glob("*.json"):
            self._reports[path.stem] = read_json(path)

    def take(self, credential: bytes) -> None:
        """Keep a report; raises munge.NotRoot and ValueError."""
        report = json.loads(munge.decode(credential))
        node = str(report["node"])
        if not _NODE.fullmatch(node):
            raise ValueError("not a node's name: " + node)
        report["received"] = int(time.time())
        write_atomically(REPORTS / (node + ".json"), (json.dumps(report) + "\n").encode())
        with self._lock:
            self._reports[node] = report

    def turn(self) -> None:
        """Submit jobs for the nodes that wait; raises slurm.Silent."""
        if not self._waiting():
            return
        # Before the reports: a node whose job is over has reported its result.
        jobs = _jobs()
        with self._lock:
            reports = list(self._reports.values())
        for pool in sorted({str(r["pool"]) for r in reports if r.get("state") == "waiting"}):
            self._serve(pool, [r for r in reports if r.get("pool") == pool], jobs)

    def _waiting(self) -> bool:
        with self._lock:
            return any(r.get("state") == "waiting" for r in self._reports.values())

    def _serve(self, pool: str, reports: list[dict[str, Any]], jobs: dict[str, Job]) -> None:
        wanted = _published(pool)
        mine = [r for r in reports if r.get("serial") == wanted.get("serial")]
        failed = [str(r["node"]) for r in mine if r.get("state") == "failed" and r.get("drain")]
        waiting = [str(r["node"]) for r in mine if r.get("state") == "waiting"]
        stopped = len(failed) > int(wanted.get("max_failed", 0))
        note = {"pool": pool, "serial": wanted.get("serial"), "failed": failed}
        path = REPORTS / (pool + ".stopped")
        if stopped:
            write_atomically(path, (json.dumps(note) + "\n").encode())
            still = [jobs[node].number for node in waiting if node in jobs and jobs[node].pending]
            if still:
                slurm.run("scancel", "--state=PENDING", *still)
            return
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        queued = sum(node in jobs for node in waiting)
        for node in sorted(waiting):
            if node not in jobs and queued < MOST_QUEUED:
                _submit(node, pool)
                queued += 1


def _published(pool: str) -> dict[str, Any]:
    """Return a pool's manifest; nodes verify its signature, here only number and limit are used."""
    try:
        found = json.loads(read_json(PUBLISHED / (pool + ".signed")).get("manifest", "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _jobs() -> dict[str, Job]:
    """Return node -> its job; raises slurm.Silent."""
    lines = slurm.run("squeue", "--noheader", "--user=root", "--format=%j %i %T").splitlines()
    rows = (line.split() for line in lines if line.startswith(JOB_PREFIX))
    return {n[len(JOB_PREFIX) :]: Job(number, state == "PENDING") for n, number, state in rows}


def _submit(node: str, pool: str) -> None:
    """Submit a job for the whole node, ahead of all others, under one of the pool's licences."""
    partitions = slurm.run("sinfo", "--noheader", "--nodes=" + node, "--format=%R").split()
    if not partitions:
        raise slurm.Silent("no partition has the node " + node)
    # NIL, not NONE: for that slurmd logs in as root to read an environment, which takes a PID
    # namespace, and fails where it may create none.
    slurm.run(
        "sbatch", "--quiet", "--job-name=" + JOB_PREFIX + node, "--nodelist=" + node, "--nodes=1",
        "--exclusive", "--mem=0", "--no-requeue", "--licenses=gcluster_update_" + pool + ":1",
        "--partition=" + partitions[0], "--priority=" + str(FIRST_OF_ALL), "--chdir=/",
        "--output=/dev/null", "--export=NIL",
        "--wrap=exec /usr/bin/systemctl start " + GRANTED_UNIT,
    )  # fmt: skip


def check(port: int) -> str:
    """Return what is wrong with the collector that runs here, "" when nothing is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        if munge.decode(munge.encode(b"{}")) != b"{}":
            return "MUNGE gives back something else than was put in"
        connection.request("POST", "/report", body=b"nobody's credential")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, munge.NotRoot) as error:
        return f"the collector does not answer: {error}"
    finally:
        connection.close()
    return "" if status == FORBIDDEN else f"the collector took an unsigned report: {status}"


def main() -> int:
    """Serve until the end."""
    parser = argparse.ArgumentParser(prog="converge-collector", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="ask the one that runs whether it works"
    )
    options = parser.parse_args()
    port = int(json.loads(SETTINGS.read_text(encoding="utf-8"))["port"])
    if options.check:
        problem = check(port)
        sys.stderr.write(problem + "\n" if problem else "")
        return 1 if problem else 0
    collector = Collector()
    threading.Thread(target=_turns, args=(collector,), daemon=True).start()

    class Handler(BaseHTTPRequestHandler):
        timeout = 20

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 < length <= LONGEST_REPORT or self.path != "/report":
                self.send_error(400)
                return
            try:
                collector.take(self.rfile.read(length))
            except munge.NotRoot as error:
                self.send_error(403, str(error))
            except (ValueError, KeyError, TypeError):
                self.send_error(400)
            else:
                self.send_response(204)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep ten thousand nodes out of the journal."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 1024
        daemon_threads = True

    Server(("0.0.0.0", port), Handler).serve_forever()  # noqa: S104  # nodes report to it
    return 0


def emit(before: str, now: str) -> str:
    """Write to the journal and with the reports why Slurm does nothing, once; return it."""
    if now and now != before:
        sys.stderr.write("Slurm: " + now + "\n")
        write_atomically(SILENT, (json.dumps({"reason": now}) + "\n").encode())
    elif before and not now:
        with contextlib.suppress(FileNotFoundError):
            SILENT.unlink()
    return now


def _turns(collector: Collector) -> None:
    # The message of an earlier collector is removed, or written again.
    state, began = "?", time.time()
    while True:
        if any(path.stat().st_mtime > began for path in Path(__file__).parent.glob("*.py")):
            os._exit(0)  # its programs were replaced: systemd starts the new ones
        try:
            collector.turn()
            state = emit(state, "")
        except slurm.Silent as silent:
            state = emit(state, str(silent))
        time.sleep(TURN_S)
