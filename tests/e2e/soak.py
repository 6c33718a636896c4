"""Keep a local cluster at work for hours and see whether anything grows: `make soak` (FOR=4h).

Each round is one of a day's events: short jobs, a node that joins and leaves again, a drained node,
a job that spills to the other site, a killed node, a killed agent, a killed slurmctld. After every
round the processes' memory and open files, the state and the time of common commands are measured.
At the end the last third of the rounds is held to the second one: a leak is what grows between
them. Nodes are containers, Slurm and the agent are real, GPUs are simulated.
"""

from __future__ import annotations

import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .bursting import NONE, Bursting
from .conftest import LiveCluster

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{home: {{provider: local}}, away: {{provider: local}}}}
pools:
  head: {{site: home, role: controller}}
  gpu: {{site: home, machine: sim.h100x8, count: {count}}}
  spill: {{site: away, machine: sim.h100x8, count: {{min: 0, max: 2}}}}
scheduler:
  type: slurm
  suspend_after: 20s
  resume_timeout: 4m
  partitions:
    train: {{pools: [gpu], default: true, max_time: 1h, spill: {{to: spill, after: 5s}}}}
smoke: {{allreduce: {{sizes: 8B..1MiB, iterations: 2}}}}
"""
DAEMONS = {"slurmctld": "head", "munged": "head", "slurmd": "gpu001"}
"""Daemon -> the node on which it is looked at."""
GROWTH_LIMIT = 1.15
"""Last third over second third, of each figure's median: memory, files and seconds."""
LONGEST_S = 420


class Soak:
    """The cluster at work, and what was measured of it."""

    def __init__(self, folder: Path) -> None:
        """Write the spec; nothing is started."""
        self.live = LiveCluster(folder)
        self.bursting = Bursting(self.live, NONE)
        self.set_nodes(2)
        self.rounds: list[dict[str, float]] = []

    def set_nodes(self, count: int) -> None:
        """Set the number of home nodes in the spec."""
        self.live.spec.write_text(SPEC.format(name=self.live.name, count=count))

    def up(self) -> None:
        """Run `up`; it must end with a passed AllReduce or with nothing to do."""
        self.live.gcluster("up", str(self.live.spec), "--yes")

    def finished(self, *jobs: str) -> None:
        """Wait until jobs have completed; a job that was lost or failed ends the soak."""
        done = lambda: all(self.bursting.state(job) == "COMPLETED" for job in jobs)  # noqa: E731
        self.bursting.until(done, within_s=LONGEST_S)

    def jobs(self) -> None:
        """Run ten short jobs, two of them on both nodes."""
        sent = [self.bursting.send("sleep 1", f"--nodes={1 + n % 5 // 4}") for n in range(10)]
        self.finished(*sent)

    def join_and_leave(self) -> None:
        """Grow by a node, use it, and shrink again."""
        self.resized(3)
        self.finished(self.bursting.send("true", "--nodes=3"))
        self.resized(2)

    def resized(self, count: int) -> None:
        """Apply another count; the agent ends on a changed spec: its unit starts it again."""
        self.set_nodes(count)
        self.up()
        assert self.bursting.agent is not None
        self.bursting.agent.wait(timeout=60)
        self.bursting.start()

    def drained(self) -> None:
        """Drain a node, see a job run on the other one, and resume it."""
        name = str(self.live.spec)
        self.live.gcluster("drain", name, "gpu002", "--reason", "soak")
        self.finished(self.bursting.send("true", "--nodes=1"))
        self.live.gcluster("resume", name, "gpu002")

    def spill(self) -> None:
        """Fill the home, have a job spill, and wait until its node is given back."""
        filler = self.bursting.send("sleep 45", "--exclusive", "--nodes=2", "--time=5")
        self.finished(self.bursting.send("true", "--exclusive", "--time=5"), filler)
        self.bursting.until(lambda: not self.bursting.rented(), within_s=LONGEST_S)

    def node_killed(self) -> None:
        """Kill a node under a job: the job must run to its end once the node is back."""
        job = self.bursting.send("sleep 5", "--nodelist=gpu002", "--requeue", "--time=5")
        self.bursting.until(lambda: self.bursting.state(job) != "PENDING", within_s=60)
        subprocess.run(
            ["podman", "kill", f"gcluster-{self.live.name}-gpu002"], check=True, capture_output=True
        )
        self.live.gcluster("up", str(self.live.spec), "--yes", expect=None)  # its job may run again
        self.finished(job)
        self.up()

    def agent_killed(self) -> None:
        """Kill the burst agent as nothing can be caught, and start it again."""
        self.bursting.stop(signal.SIGKILL)
        self.bursting.start()

    def controller_killed(self) -> None:
        """Kill slurmctld under a job; systemd or the next `up` starts it, the job goes on."""
        job = self.bursting.send("sleep 45")
        self.bursting.until(lambda: self.bursting.state(job) == "RUNNING", within_s=LONGEST_S)
        # A kill before it has written down that the job runs has it start the job again, on a node
        # that has it ("Duplicate jobid", drained): 12 s were too few once, on a busy machine.
        time.sleep(20)
        self.bursting.on_head("sudo systemctl kill --signal=KILL slurmctld")
        self.live.gcluster("up", str(self.live.spec), "--yes", expect=None)
        self.finished(job)
        self.up()

    def measure(self, event: str) -> None:
        """Write down what a leak would show in."""
        now: dict[str, float] = {}
        for daemon, node in DAEMONS.items():
            memory, files = self._process(node, daemon)
            now |= {f"{daemon} MB": memory, f"{daemon} open files": files}
        assert self.bursting.agent is not None
        now["agent MB"], now["agent open files"] = _process(self.bursting.agent.pid)
        kept = [path for path in self.live.data.rglob("*") if path.is_file()]
        now["state files"] = len(kept)
        now["state kB"] = sum(path.stat().st_size for path in kept) / 1e3
        spec = str(self.live.spec)
        now["status s"] = _seconds(lambda: self.live.gcluster("status", spec))
        now["up again s"] = _seconds(self.up)
        now["srun s"] = _seconds(lambda: self.bursting.on_head("srun --nodes=2 true"))
        now["processes here"] = len(self.live.processes())
        self.rounds.append(now)
        line = {"round": len(self.rounds), "event": event} | {
            k: round(v, 2) for k, v in now.items()
        }
        sys.stderr.write(json.dumps(line) + "\n")

    def _process(self, node: str, daemon: str) -> tuple[float, float]:
        container = f"gcluster-{self.live.name}-{node}"
        ask = f"p=$(pidof -s {daemon}); grep VmRSS /proc/$p/status; ls /proc/$p/fd | wc -l"
        done = subprocess.run(
            ["podman", "exec", container, "sh", "-c", ask],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        _, kilobytes, _, files = done.stdout.split()
        return int(kilobytes) / 1e3, int(files)

    def verdict(self) -> int:
        """Print each figure's growth; return 1 where one grows that must not."""
        third = len(self.rounds) // 3
        grown = []
        sys.stdout.write(f"{len(self.rounds)} rounds: median of the second third, of the last\n")
        for name in self.rounds[0]:
            second, last = (
                statistics.median(each[name] for each in part)
                for part in (self.rounds[third : 2 * third], self.rounds[2 * third :])
            )
            ratio = last / second if second else 1.0
            a_log = name.startswith("state")  # the event log is kept whole: said, not judged
            over = ratio > GROWTH_LIMIT and not a_log
            grown += [name] * over
            word = "OVER" if over else "a log, not judged" if a_log else "ok"
            sys.stdout.write(f"  {name:<24}{second:>10.2f}{last:>10.2f}  x {ratio:.2f}  {word}\n")
        sys.stdout.write(f"grew: {', '.join(grown) or 'nothing'}\n")
        return 1 if grown else 0


def _process(number: int) -> tuple[float, float]:
    status = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kilobytes) / 1e3, len(list(Path(f"/proc/{number}/fd").iterdir()))


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def main() -> int:
    """Soak for so many hours or minutes ("4h", "90m"); nothing is left at the end."""
    length, unit = float(sys.argv[1][:-1]), sys.argv[1][-1]
    until = time.monotonic() + length * {"h": 3600, "m": 60}[unit]
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        events = (soak.jobs, soak.join_and_leave, soak.drained, soak.spill, soak.node_killed,
                  soak.agent_killed, soak.controller_killed)  # fmt: skip
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what the commands print
                soak.up()
                soak.bursting.start()
                while time.monotonic() < until:
                    event = events[len(soak.rounds) % len(events)]
                    event()
                    soak.measure(event.__name__)
        finally:
            soak.bursting.stop(signal.SIGTERM)
            soak.live.gcluster("down", str(soak.live.spec), "--yes", expect=None)
        if len(soak.rounds) < 3 * len(events):
            sys.stdout.write(f"{len(soak.rounds)} rounds are too few to judge growth\n")
            return 1
        return soak.verdict()


if __name__ == "__main__":
    sys.exit(main())
