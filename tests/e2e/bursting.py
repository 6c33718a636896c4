"""Two local sites on networks of their own, an agent during the test, and faults to inject."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.state import (
    IntentsStored,
    ResourcesCreated,
    ResourcesDeleted,
    ResourcesFailed,
)
from gcluster.stacks.local.faults import VARIABLE, Faults

from .conftest import LiveCluster

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites:
  home: {{provider: local}}
  away: {{provider: local}}
pools:
  head: {{site: home, role: controller}}
  gpu: {{site: home, machine: sim.h100x8, count: 2}}
  spill: {{site: away, machine: sim.h100x8, count: {{min: 0, max: 4}}}}
  full: {{site: away, machine: sim.h100x8, count: {{min: 0, max: 1}}}}
  mute: {{site: away, machine: sim.h100x8, count: {{min: 0, max: 1}}}}
  dear: {{site: away, machine: sim.h100x8, count: {{min: 0, max: 1}}}}
scheduler:
  type: slurm
  suspend_after: 20s
  resume_timeout: 4m
  partitions:
    train: {{pools: [gpu], default: true, max_time: 1h, spill: {{to: spill, after: 10s}}}}
    thrifty:
      pools: [gpu]
      max_time: 1h
      spill: {{to: dear, after: 10s, max_usd_per_hour: 5}}
    none: {{pools: [full]}}
    deaf: {{pools: [mute]}}
smoke: {{allreduce: {{sizes: 8B..1MiB, iterations: 2}}}}
"""
NONE = Faults()
FAULTS = Faults(refuse="full001", mask={"ssh.service": "mute001"}, usd_per_hour=9)
"""No capacity for one pool, one node that boots and never answers, a price above `dear`'s."""


class Bursting:
    """The cluster, and an agent that runs during the test."""

    def __init__(
        self,
        live: LiveCluster,
        faults: Faults = FAULTS,
        *,
        spec: str = SPEC,
        away: str = "away",
    ) -> None:
        """Write the spec; nothing is started.

        Args:
            live: drives the command.
            faults: that the provider has from the beginning.
            spec: with the cluster's name left open.
            away: the site with nodes that come and go.
        """
        self.live = live
        self._always = faults
        self._away = away
        live.spec.write_text(spec.format(name=live.name))
        self.log = live.spec.with_name("agent.jsonl")
        self.faults = live.spec.with_name("faults.json")
        self.agent: subprocess.Popen[str] | None = None
        self.inject()

    def inject(self, *, before_s: float = 0, after_s: float = 0) -> None:
        """Delay provider calls, in addition to the faults that are always there."""
        slow = {"before_s": before_s, "after_s": after_s}
        fresh = self.faults.with_suffix(".new")
        fresh.write_text(json.dumps(msgspec.to_builtins(self._always) | slow))
        fresh.replace(self.faults)

    def start(self) -> None:
        """Start the agent; what it says is added to its log."""
        command = [str(Path(sys.executable).with_name("gcluster")), "burst", "agent"]
        with self.log.open("a") as log:
            self.agent = subprocess.Popen(
                [*command, str(self.live.spec)],
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env=self.live.environment | {VARIABLE: str(self.faults)},
            )

    def stop(self, number: int = signal.SIGKILL) -> None:
        """End the agent by a signal."""
        if self.agent is not None:
            self.agent.send_signal(number)
            self.agent.wait(timeout=120)
            self.agent = None

    def kill_when(self, holds: Callable[[], bool], *, within_s: float) -> None:
        """Kill the agent as soon as something holds, and start it again."""
        self.until(holds, within_s=within_s, every_s=0.1)
        self.stop()
        self.start()

    def events(self, what: str, nodes: str = "") -> list[dict[str, Any]]:
        """Return the agent's events of one kind; "": of all nodes."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        events = (json.loads(line) for line in lines if line.startswith("{") and line.endswith("}"))
        return [e for e in events if e.get("what") == what and nodes in e.get("nodes", "")]

    def until(self, holds: Callable[[], bool], *, within_s: float, every_s: float = 1) -> None:
        """Wait until something holds; fails with the agent's log."""
        began = time.monotonic()
        while not holds():
            assert self.agent is None or self.agent.poll() is None, self.log.read_text()
            assert time.monotonic() - began < within_s, self.log.read_text()
            time.sleep(every_s)

    def on_head(self, command: str) -> str:
        """Run a shell command on the controller."""
        return self.live.on("head", command)

    def send(self, wrapped: str, *options: str) -> str:
        """Send a job; return its number."""
        words = " ".join(options)
        return self.on_head(f"sbatch --parsable --chdir=/tmp {words} --wrap '{wrapped}'").strip()

    def job(self, job: str, field: str) -> str:
        """Return what Slurm has of a job; "" after its record is purged."""
        shown = self.on_head(f"scontrol show job {job} || true")
        found = re.search(rf"(?:^|\s){field}=(.*)", shown)
        return found[1] if found else ""

    def state(self, job: str) -> str:
        """Return a job's state."""
        return self.job(job, "JobState").split(" ")[0]

    def rented(self, node: str = "") -> list[str]:
        """Return the ids of the containers of nodes that come and go."""
        label = f"label=gcluster.node={node}" if node else "label=gcluster.elastic"
        done = subprocess.run(
            ["podman", "ps", "-a", "--no-trunc", "-q", "--filter", label,
             "--filter", f"label=gcluster.cluster={self.live.name}",
             "--filter", f"label=gcluster.site={self._away}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()

    def close(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """Take it all down; the book must be closed then, and nothing left."""
        self.until(lambda: not self.rented(), within_s=120)
        self.stop(signal.SIGTERM)
        answer = self.tally(monkeypatch)

        self.live.gcluster("down", str(self.live.spec), "--yes")

        with capsys.disabled():
            counted = ", ".join(f"{count} {word}" for word, count in answer.items())
            sys.stdout.write(f"\n{counted}; {len(self.rented())} containers by label\n")
        assert answer["intents"] == answer["results"]
        assert answer["created"] == answer["deletions"]
        assert not any(self.live.left_behind().values())

    def cut_off(self, node: str) -> None:
        """Take a rented node's network away; the machine itself goes on."""
        (container,) = self.rented(node)
        network = f"gcluster-{self.live.name}-{self._away}"
        words = ["podman", "network", "disconnect", "--force", network, container]
        subprocess.run(words, capture_output=True, check=True)

    def tally(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
        """Return how the book closes, of the nodes that come and go."""
        for key in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.setenv(key, self.live.environment[key])
        bodies = [event.body for event in open_cluster(str(self.live.spec)).events.read()]
        ours = {
            each.id
            for body in bodies
            if isinstance(body, IntentsStored)
            for each in body.intents
            if each.site == self._away
            and each.resource_key.startswith("node/")
            and each.pool != "head"
        }
        created = _ours(ours, (b.created for b in bodies if isinstance(b, ResourcesCreated)))
        failed = _ours(ours, (b.failed for b in bodies if isinstance(b, ResourcesFailed)))
        ids = set(created.values())
        deleted = [
            each
            for body in bodies
            if isinstance(body, ResourcesDeleted)
            for each in body.deleted
            if each.provider_id in ids
        ]
        return {
            "intents": len(ours),
            "results": len(created.keys() | failed.keys()),
            "created": len(ids),
            "refused": len(failed),
            "deletions": len(deleted),
        }


@contextmanager
def filled(folder: Path, faults: Faults = FAULTS) -> Iterator[Bursting]:
    """Give the cluster, up, its home filled, an agent at work; take it down whatever happens."""
    live = LiveCluster(folder)
    bursting = Bursting(live, faults)
    try:
        live.json("up", str(live.spec), "--yes")
        bursting.send("sleep 3600", "--exclusive", "--nodes=2", "--time=59")
        bursting.start()
        yield bursting
    finally:
        bursting.stop()
        live.gcluster("down", str(live.spec), "--yes", expect=None)


def _ours(intents: set[str], answer: Iterable[dict[str, str]]) -> dict[str, str]:
    return {key: value for each in answer for key, value in each.items() if key in intents}
