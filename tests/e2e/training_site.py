"""A cluster of local nodes with storage that they share, and the trainings there."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import LiveCluster, until

LOSS = re.compile(r"^step (\d+) loss ([-\d.]+)$", re.MULTILINE)
STORAGE = ("scratch", "second")


class Lab:
    """One cluster with storage that its nodes share, and the jobs there."""

    def __init__(
        self, live: LiveCluster, nodes: int, workloads: dict[str, Any], files: Iterable[Path]
    ) -> None:
        """Bring the cluster up; the training's files are put on its storage."""
        live.write_spec(nodes=nodes)
        spec = yaml.safe_load(live.spec.read_text())
        spec["storage"] = {
            name: {"type": "nfs", "mount": f"/{name}", "server": "head"} for name in STORAGE
        }
        spec["scheduler"] |= {
            "qos": {
                "urgent": {"priority": 1000, "preempts": ["low"]},
                "usual": {"priority": 10},
                "low": {"preemptible": "requeue", "grace": "1m"},
            },
            "accounts": {"lab": {"users": ["ada"]}},
            # Local nodes have no disks of their own: who saves there first says where that is.
            "job_scratch": "/local",
            # How long a job that was queued again waits: 120 s otherwise.
            "settings": {"slurm": {"AuthInfo": "cred_expire=30"}},
        }
        spec["workloads"] = workloads
        live.spec.write_text(yaml.safe_dump(spec, sort_keys=False))
        self.live = live
        live.gcluster("up", str(live.spec), "--yes")
        name = f"gcluster-{live.name}-here-scratch"
        where = podman("volume", "inspect", "--format", "{{.Mountpoint}}", name)
        self.scratch = Path(where)
        for file in files:
            shutil.copy(file, self.scratch)

    def on(self, node: str, command: str, *, expect: int | None = 0) -> str:
        """Run a shell line in a node's container."""
        line = ["podman", "exec", self.container(node), "sh", "-c", command]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert expect is None or done.returncode == expect, done
        return done.stdout.strip()

    def container(self, node: str) -> str:
        """Return the name of a node's container."""
        return f"gcluster-{self.live.name}-{node}"

    @contextlib.contextmanager
    def slowed(self, node: str) -> Iterator[None]:
        """Have a node's network pass 200 Mbit/s, and no more."""
        process = podman("inspect", "--format", "{{.State.Pid}}", self.container(node))
        shaped = ["nsenter", "--target", process, "--net", "tc", "qdisc"]
        limit = ["tbf", "rate", "200mbit", "burst", "64kb", "latency", "50ms"]
        subprocess.run([*shaped, "add", "dev", "eth0", "root", *limit], check=True)
        try:
            yield
        finally:
            subprocess.run([*shaped, "del", "dev", "eth0", "root"], check=False)

    def submit(self, case: str) -> str:
        """Submit a workload as ada; return its job."""
        said = self.live.gcluster("run", str(self.live.spec), case, "--user", "ada", "--detach")
        found = re.search(r"job (\d+) is queued", said.stdout)
        assert found, said
        return found.group(1)

    def log(self, case: str, job: str) -> str:
        """Return what a job has printed so far."""
        path = self.scratch / f"{case}-{job}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def losses(self, case: str, job: str, *, within: float = 0.0) -> dict[int, str]:
        """Return step -> loss; a step that was done again must have the same loss."""
        found: dict[int, str] = {}
        for step, loss in LOSS.findall(self.log(case, job)):
            before = found.setdefault(int(step), loss)
            is_same = before == loss or abs(float(before) - float(loss)) <= within
            assert is_same, f"step {step} of {case} differs"
        return found

    def nodes(self, job: str) -> list[str]:
        """Return the nodes that a job has, in Slurm's order."""
        listed = f"scontrol show hostnames $(squeue --noheader --jobs={job} --format=%N)"
        return self.on("head", listed).split()

    def last(self, case: str, job: str) -> int:
        """Return the last step that is in the log, 0 before the first."""
        steps = LOSS.findall(self.log(case, job))
        return int(steps[-1][0]) if steps else 0

    def state(self, job: str) -> str:
        """Return a job's state."""
        return self.on(
            "head", f"scontrol show job {job} | sed -n 's/.*JobState=\\([A-Z_]*\\).*/\\1/p'"
        )

    def reaches(self, case: str, job: str, step: int) -> None:
        """Return when a job has done a step and saved before it."""
        until(lambda: self.last(case, job) >= step and "saved" in self.log(case, job), 600)

    def ends(self, job: str) -> str:
        """Return the state in which a job ends."""
        running = {"RUNNING", "PENDING", "COMPLETING", "REQUEUED", ""}
        until(lambda: self.state(job) not in running, 600)
        return self.state(job)

    def resumed(self, case: str, job: str, times: int) -> float:
        """Return when the first step after so many resumptions was in the log (monotonic)."""

        def is_there() -> bool:
            parts = self.log(case, job).split("gcluster: resuming from /")
            # A node that was lost may refuse the first step after its return.
            return any(LOSS.search(part) for part in parts[times:])

        until(is_there, 600)
        return time.monotonic()


def podman(*words: str) -> str:
    """Run podman and return what it printed."""
    return subprocess.run(
        ["podman", *words], capture_output=True, text=True, check=True
    ).stdout.strip()


MEASURED: list[str] = []


def measured(line: str) -> None:
    """Keep a measured line, which is printed at the end."""
    MEASURED.append(line)


@contextlib.contextmanager
def opened(
    request: pytest.FixtureRequest,
    folder: Path,
    nodes: int,
    workloads: dict[str, Any],
    files: Iterable[Path],
) -> Iterator[Lab]:
    """Yield a cluster, and take it down with its data; print what was measured."""
    cluster = LiveCluster(folder)
    try:
        yield Lab(cluster, nodes, workloads, files)
    finally:
        named = [word for name in STORAGE for word in ("--delete-data", name)]
        cluster.gcluster("down", str(cluster.spec), "--yes", *named, expect=None)
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            sys.stdout.write("\n" + "".join(f"  {line}\n" for line in MEASURED))
        MEASURED.clear()
    assert not cluster.engine("volume", "ls")
