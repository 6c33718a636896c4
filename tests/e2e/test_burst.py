"""Jobs that spill from one local site to another, each on a network of its own (make prove-burst).

Nodes are containers, Slurm is real. The tests run in order and share one cluster: its partition at
home has one node, which a long job fills. Four nodes may come: one that Slurm let go is asked for
again only after SuspendTimeout (5 min).
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.burst]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites:
  home: {{provider: local}}
  away: {{provider: local}}
pools:
  head: {{site: home, role: controller}}
  gpu: {{site: home, machine: sim.h100x8, count: 1}}
  spill: {{site: away, machine: sim.h100x8, count: {{min: 0, max: 4}}}}
scheduler:
  type: slurm
  suspend_after: 30s
  resume_timeout: 10m
  partitions:
    train: {{pools: [gpu], default: true, max_time: 1h, spill: {{to: spill, after: 10s}}}}
smoke: {{allreduce: {{sizes: 8B..1MiB, iterations: 2}}}}
"""
ALLREDUCE = (
    "from mpi4py import MPI; c = MPI.COMM_WORLD; "
    "print('sum', c.allreduce(c.rank + 1), 'of', c.size, 'on', MPI.Get_processor_name())"
)


class Bursting:
    """The cluster, and an agent that runs beside the test."""

    def __init__(self, live: LiveCluster) -> None:
        """Write the spec; nothing is started."""
        self.live = live
        live.spec.write_text(SPEC.format(name=live.name))
        self.log = live.spec.with_name("agent.jsonl")
        self.agent: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the agent; what it says is added to its log."""
        command = [str(Path(sys.executable).with_name("gcluster")), "burst", "agent"]
        with self.log.open("a") as log:
            self.agent = subprocess.Popen(
                [*command, str(self.live.spec), "--interval", "2s"],
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env=self.live.environment,
            )

    def stop(self, number: int = signal.SIGKILL) -> None:
        """End the agent by a signal."""
        if self.agent is not None:
            self.agent.send_signal(number)
            self.agent.wait(timeout=120)
            self.agent = None

    def said(self, what: str) -> list[dict[str, Any]]:
        """Return the agent's events of one kind."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        events = (json.loads(line) for line in lines if line.startswith("{"))
        return [event for event in events if event.get("what") == what]

    def until(self, holds: Callable[[], bool], *, within_s: float) -> float:
        """Wait until something holds; return the seconds. Fails with the agent's log."""
        began = time.monotonic()
        while not holds():
            assert self.agent is None or self.agent.poll() is None, self.log.read_text()
            assert time.monotonic() - began < within_s, self.log.read_text()
            time.sleep(1)
        return time.monotonic() - began

    def on_head(self, command: str) -> str:
        """Run a shell command on the controller."""
        return self.live.on("head", command)

    def send(self, wrapped: str, *options: str) -> str:
        """Send a job; return its number."""
        words = " ".join(options)
        return self.on_head(f"sbatch --parsable {words} --wrap '{wrapped}'").strip()

    def state(self, job: str) -> str:
        """Return a job's state; "" where Slurm has forgotten it."""
        shown = self.on_head(f"scontrol --oneliner show job {job} || true")
        return next((w[9:] for w in shown.split() if w.startswith("JobState=")), "")


@pytest.fixture(scope="module")
def bursting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bursting]:
    """Give the cluster, up, its home filled; take it down and look for what is left."""
    live = LiveCluster(tmp_path_factory.mktemp("burst"))
    bursting = Bursting(live)
    try:
        live.json("up", str(live.spec), "--yes")
        bursting.send("sleep 3600", "--exclusive", "--time=59")
        yield bursting
    finally:
        bursting.stop()
        live.gcluster("down", str(live.spec), "--yes", expect=None)


def test_a_job_spills_runs_its_allreduce_on_rented_nodes_and_all_is_given_back(
    bursting: Bursting,
) -> None:
    bursting.start()
    wrapped = f'srun --mpi=pmix python3 -c "{ALLREDUCE}"'
    began = time.monotonic()
    job = bursting.send(wrapped, "--nodes=2", "--ntasks-per-node=1", "--time=10", "--chdir=/tmp")

    bursting.until(lambda: bursting.state(job) in {"RUNNING", "COMPLETED"}, within_s=420)
    sys.stdout.write(f"from the request to a running job: {time.monotonic() - began:.1f} s\n")
    bursting.until(lambda: bursting.state(job) == "COMPLETED", within_s=180)
    bursting.until(lambda: len(bursting.said("gone")) >= 1, within_s=240)

    assert bursting.said("moved")[0]["job"] == job
    assert bursting.said("asked")[0]["nodes"] == "spill[001-002]"
    assert "spills to spill" in bursting.on_head(f"scontrol show job {job}")


def test_an_agent_that_is_killed_while_it_makes_nodes_goes_on(bursting: Bursting) -> None:
    bursting.stop()
    asked, gone = len(bursting.said("asked")), len(bursting.said("gone"))
    bursting.start()
    job = bursting.send("sleep 5", "--partition=spill", "--time=5", "--chdir=/tmp")
    bursting.until(lambda: len(bursting.said("asked")) > asked, within_s=420)
    bursting.stop(signal.SIGKILL)

    bursting.start()

    bursting.until(lambda: bursting.state(job) == "COMPLETED", within_s=420)
    bursting.until(lambda: len(bursting.said("gone")) > gone, within_s=240)
    assert len(bursting.said("asked")) == asked + 1


def test_a_job_that_may_not_leave_is_told_why(bursting: Bursting) -> None:
    job = bursting.send("true", "--exclusive", "--time=5", "--comment=spill=no")

    told = bursting.live.json("burst", "explain", str(bursting.live.spec), job)

    against = [r["word"] for r in told["decision"]["reasons"] if not r["holds"]]
    assert "leave" in against
    bursting.until(lambda: "stays (" in bursting.on_head(f"scontrol show job {job}"), within_s=60)
    bursting.on_head(f"scancel {job}")


def test_a_route_that_is_cut_during_a_job_ends_in_nodes_given_back(bursting: Bursting) -> None:
    gone = len(bursting.said("gone"))
    job = bursting.send("sleep 600", "--partition=spill", "--time=15", "--chdir=/tmp")
    bursting.until(lambda: bursting.state(job) == "RUNNING", within_s=420)
    node = bursting.on_head(f"squeue --noheader --jobs={job} --format=%N").strip()
    address = bursting.on_head(f"scontrol --oneliner show node {node}").split("NodeAddr=")[1]
    network = address.split()[0].rsplit(".", 1)[0]

    bursting.on_head(f"ip route add blackhole {network}.0/24")
    try:
        bursting.until(lambda: len(bursting.said("gone")) > gone, within_s=300)
    finally:
        bursting.on_head(f"ip route del blackhole {network}.0/24; scancel {job}")


def test_nothing_is_left_and_the_book_is_closed(bursting: Bursting) -> None:
    bursting.until(lambda: not _rented(bursting.live), within_s=300)
    bursting.stop(signal.SIGTERM)

    bursting.live.gcluster("down", str(bursting.live.spec), "--yes")

    assert not any(bursting.live.left_behind().values())


def _rented(live: LiveCluster) -> list[str]:
    done = subprocess.run(
        ["podman", "ps", "-a", "--filter", f"label=gcluster.cluster={live.name}",
         "--filter", "label=gcluster.elastic", "-q"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()
