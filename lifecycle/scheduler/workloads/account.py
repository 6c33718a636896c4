"""What a job costs, and how much of its nodes' time counts."""

from __future__ import annotations

import shlex
from collections import Counter

import msgspec

from ....inventory.compile.node import NodeFacts, node_facts
from ....inventory.compile.slurm.job_programs import PROGRAMS
from ....inventory.hosts import ClusterInventory
from ....inventory.waste.rules import node_prices
from ....inventory.workloads.checkpoints import folder
from ....inventory.workloads.place import place_of
from ....schemas.derived.control_planes import gpu_sharing
from ....schemas.spec import KubernetesScheduler, SlurmScheduler
from ....schemas.spec.units import Duration
from ....schemas.structure.decoding import decode_json
from ...cluster.cluster import Cluster
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from .jobs import JobState

_LIMIT_S = 30
_JOURNAL = f"{PROGRAMS}/job_launch/journal.py"


class Interruption(msgspec.Struct, frozen=True):
    """What ended an attempt of a job."""

    seconds: float
    """From what was last saved to the first line of the next attempt: time that doesn't count."""
    cause: str


class Gate(msgspec.Struct, frozen=True):
    """One measurement of a job's nodes, two by two."""

    when: str
    """"before" it began, or "after" it ended."""
    middle: float
    """GB/s of the node in the middle; 0: there was no result."""
    slow: tuple[str, ...]
    """Nodes that were slow."""


class Goodput(msgspec.Struct, frozen=True):
    """What a job did with its nodes, in all its runs; see `job_launch/journal.py`."""

    paid: float
    """Node seconds of its allocations, spares too."""
    useful: float
    """Of these, node seconds until a checkpoint that was resumed from or is the newest."""
    interruptions: tuple[Interruption, ...]
    uncopied: str = ""
    """Why its newest checkpoint has no copy where it should have one."""
    gates: tuple[Gate, ...] = ()
    """Measurements of its nodes, the oldest first."""

    @property
    def share(self) -> float:
        """Useful part of what was paid, 0 to 1."""
        return self.useful / self.paid if self.paid else 0.0


class Price(msgspec.Struct, frozen=True):
    """What a job's nodes cost, or its part of their GPUs."""

    usd_per_hour: float | None
    """None: a price isn't known, or its nodes aren't."""
    usd: float | None
    """So far, or in all, of its last run."""


class JobAccount(msgspec.Struct, frozen=True):
    """One job with its price and its goodput."""

    job: JobState
    price: Price
    goodput: Goodput | None
    """None: it saves no checkpoints, hasn't begun, or its node doesn't answer."""


def price_of(cluster: Cluster, hosts: ClusterInventory, state: JobState) -> Price:
    """Return what a job has or had costs, by its pools' prices: nodes, or its part of their GPUs.

    GPUs that pods have in slices have no price of their own, so it isn't known.
    """
    prices = node_prices(cluster.spec, cluster.catalog)
    pools = {host.name: host.pool for host in hosts.hosts}
    on = [pools.get(node, "") for node in state.on]
    known = [price for pool in on if (price := prices.get(pool)) is not None]
    if not on or len(known) < len(on):
        return Price(None, None)
    there = 0
    if state.gpus:
        facts = node_facts(cluster.spec, cluster.catalog)
        for pool, nodes in Counter(on).items():
            count = _gpus_of(facts[pool])
            if count is None:
                return Price(None, None)
            there += nodes * count
    part = min(state.gpus / there, 1.0) if there else 1.0
    hourly, ran = part * sum(known), Duration.of_slurm(state.elapsed)
    return Price(hourly, hourly * (0 if ran is None else ran.value) / 3600)


def _gpus_of(node: NodeFacts) -> int | None:
    """Return what a node of a pool has as the scheduler counts it; None: cut in parts."""
    machine, scheduler = node.machine, node.spec.scheduler
    count = 0 if machine is None or machine.gpu is None else machine.gpu.count
    if not isinstance(scheduler, KubernetesScheduler):
        return count * node.pool.slices_per_gpu
    sharing = gpu_sharing(scheduler, node.name, node.pool)
    return None if sharing.mig else count * sharing.time_slices


def account_of(
    cluster: Cluster, hosts: ClusterInventory, session: SshSession, state: JobState
) -> JobAccount:
    """Return what a job costs and what it did with its time."""
    return JobAccount(
        job=state,
        price=price_of(cluster, hosts, state),
        goodput=_goodput(cluster, hosts, session, state),
    )


def _goodput(
    cluster: Cluster, hosts: ClusterInventory, session: SshSession, state: JobState
) -> Goodput | None:
    """Read the journal next to a workload's checkpoints, as the job's user."""
    workload = cluster.spec.workloads.get(state.name)
    host = next((host for host in hosts.hosts if host.name == state.batch_host), None)
    is_slurm = isinstance(cluster.spec.scheduler, SlurmScheduler)
    if not is_slurm or workload is None or workload.checkpoint is None or host is None:
        return None
    place = place_of(cluster.spec, cluster.catalog, workload)
    saved = folder(state.name, workload.checkpoint, place)
    line = shlex.join(["python3", _JOURNAL, saved, state.id])
    words = as_root(host, ["runuser", "-u", state.user, "--", "sh", "-c", line])
    answer = session.run(host, words, timeout_s=_LIMIT_S)
    if isinstance(answer, Unreachable) or answer.returncode != 0:
        return None
    try:
        found: Goodput | None = decode_json(answer.stdout, Goodput | None)
    except msgspec.DecodeError:
        return None
    return found
