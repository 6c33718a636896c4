"""An agent between the controller's double and a simulated cloud, all of it in files."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.sites import open_sites
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.operations.burst.agent.calls import AgentEvent, CallPool
from gcluster.lifecycle.operations.burst.agent.ledger import BurstLedger
from gcluster.lifecycle.operations.burst.agent.loop import Agent
from gcluster.lifecycle.operations.burst.agent.setup import (
    elastic_pools,
    permanent_nodes,
    spillings,
)
from gcluster.lifecycle.operations.burst.agent.work import ProviderWork
from gcluster.lifecycle.operations.burst.policy import PendingJob
from gcluster.lifecycle.state import EventLog

from .controller_double import ControllerDouble, ControllerState, DoubleJob, DoubleNode

SPEC = """\
apiVersion: gcluster/v1
name: trial
sites:
  lab: {{provider: simulated}}
  cloud: {{provider: simulated{cloud}}}
pools:
  head: {{site: lab, role: controller}}
  gpu: {{site: lab, machine: sim.h100x8, count: 2}}
  spill: {{site: cloud, machine: sim.h100x8, count: {{min: 0, max: 4}}}}
scheduler:
  type: slurm
  partitions:
    train: {{pools: [gpu], default: true, spill: {{to: spill, after: 1m{spill}}}}}
"""
BEGIN = 1_767_225_600.0
"""2026-01-01T00:00Z."""


class Inline:
    """A thread pool that makes each call at once: a kill is placed by the call's number."""

    def start(self, nodes: Collection[str], call: Callable[[], object]) -> None:  # noqa: ARG002  # as a thread pool
        """Make the call."""
        call()

    def busy(self) -> frozenset[str]:
        """Return no node: every call has ended."""
        return frozenset()

    def raise_failures(self) -> None:
        """Raise nothing: errors come out of `start`."""


class Harness:
    """The files; every call opens them again, as a program that is started again does."""

    def __init__(self, folder: Path, *, cloud: str = "", spill: str = "", at_home: int = 2) -> None:
        """Write a spec and a controller with two home nodes, `at_home` of them busy for an hour."""
        folder.mkdir(parents=True, exist_ok=True)
        self.spec = folder / "cluster.yaml"
        self.spec.write_text(SPEC.format(cloud=cloud, spill=spill))
        self.controller = ControllerDouble(folder / "controller.json")
        answer = ControllerState(now=BEGIN)
        for number in (1, 2):
            answer.nodes[f"gpu00{number}"] = DoubleNode(
                partition="train", elastic=False, state="here", since=BEGIN
            )
        for number in (1, 2, 3, 4):
            answer.nodes[f"spill00{number}"] = DoubleNode(
                partition="spill", elastic=True, state="off"
            )
        if at_home:
            answer.jobs["home"] = _job("home", "train", at_home, run_s=3600)
        self.controller.save(answer)
        self.events: list[AgentEvent] = []

    @classmethod
    def opened(cls, folder: Path) -> Harness:
        """Return the harness whose files are there already."""
        harness = cls.__new__(cls)
        harness.spec = folder / "cluster.yaml"
        harness.controller = ControllerDouble(folder / "controller.json")
        harness.events = []
        return harness

    def submit(
        self, name: str, *, nodes: int = 1, partition: str = "train", run_s: float = 100
    ) -> None:
        """Put a job in line."""
        with self.controller.changed() as answer:
            answer.jobs[name] = _job(name, partition, nodes, run_s=run_s, now=answer.now)

    def change(self, act: Callable[[ControllerState], None]) -> None:
        """Change what the controller's double knows."""
        with self.controller.changed() as answer:
            act(answer)

    def cluster(self) -> Cluster:
        """Open the cluster; its events have the double's time."""
        cluster = open_cluster(str(self.spec))
        cluster.identify()

        def clock() -> datetime:
            return datetime.fromtimestamp(self.controller.load().now, UTC)

        cluster.__dict__["events"] = EventLog(cluster.store, clock=clock)
        return cluster

    def agent(self, cluster: Cluster, call_pool: CallPool | None = None) -> Agent:
        """Return an agent that knows nothing but what is in the files."""
        session = SshSession(cluster.workdir)
        work = ProviderWork(cluster, open_sites(cluster), session, cluster.run_directory("burst"))
        return Agent(
            pools=elastic_pools(cluster.spec, cluster.catalog),
            spills=spillings(cluster.spec, cluster.catalog),
            always=permanent_nodes(cluster.spec),
            scheduler=self.controller,
            work=work,
            ledger=BurstLedger(cluster.events),
            call_pool=call_pool or Inline(),
            say=self.events.append,
        )

    def run(self, rounds: int = 400) -> None:
        """Have rounds until all jobs but those of home are done and all is given back."""
        cluster = self.cluster()
        agent = self.agent(cluster)
        for _ in range(rounds):
            agent.round()
            if self.is_over():
                return
        raise AssertionError(f"not over after {rounds} rounds: {self.controller.load()}")

    def is_over(self) -> bool:
        """Say whether no job waits or runs, and no node is there but those of home."""
        answer = self.controller.load()
        done = all(job.ended is not None for key, job in answer.jobs.items() if key != "home")
        return done and all(n.state == "off" for n in answer.nodes.values() if n.elastic)

    def tally(self) -> dict[str, int]:
        """Return how the book closes: intents, what came of them, and what is left anywhere."""
        cluster = self.cluster()
        bodies = [event.body for event in cluster.events.read()]
        count = {"intents": 0, "created": 0, "failed": 0, "deleted": 0}
        for body in bodies:
            count["intents"] += len(getattr(body, "intents", ()))
            count["created"] += len(getattr(body, "created", ()))
            failed = getattr(body, "failed", {})
            count["failed"] += len(failed) if type(body).__name__ == "ResourcesFailed" else 0
            count["deleted"] += len(getattr(body, "deleted", ()))
        site = next(s for s in open_sites(cluster) if s.name == "cloud")
        ledger = cluster.ledger
        return count | {
            "open": len(ledger.open_intents("cloud")),
            "existing": len(ledger.existing("cloud")),
            "leftovers": len(site.provider.sweep(site.context)),
            "live": sum(r.is_live for r in BurstLedger(cluster.events).read().nodes.values()),
        }


def _job(name: str, partition: str, nodes: int, *, run_s: float, now: float = BEGIN) -> DoubleJob:
    job = PendingJob(
        id=name, eligible_since=now, nodes=nodes, gpus_per_node=8, time_limit=run_s, account=None
    )
    return DoubleJob(job=job, partition=partition, run_s=run_s)
