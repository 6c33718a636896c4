"""Why a waiting job spills or stays, from a running cluster."""

from __future__ import annotations

import msgspec

from ...cluster.cluster import open_cluster
from ...cluster.outcome import Exit, failure
from ...nodes.ssh import SshSession
from ...state import JobMoved  # msgspec reads it
from ..selection import require_slurm
from .agent.ledger import BurstLedger
from .agent.run import refuse_without_pools, scheduler_of, silent
from .agent.scheduler import SchedulerSilent
from .agent.setup import elastic_pools, spillings
from .agent.spill import closed_reason, judge
from .policy import Backfill, Decision  # msgspec reads them


class RentedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that a job has, as the agent's ledger has it."""

    node: str
    step: str
    option: str
    reason: str


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons for and against a job's move, and its state."""

    job: str
    partition: str
    nodes: tuple[RentedNode, ...] = ()
    moved: JobMoved | None = None
    """Its last move."""
    pool: str | None = None
    """Where it would spill to; None: jobs of its partition don't."""
    closed: str = ""
    """Why nothing can be had of that pool now."""
    decision: Decision | None = None
    """None: it doesn't wait in a partition whose jobs spill."""
    promise: Backfill | None = None


def explain_job(target: str, job: str) -> Explained:
    """Query the scheduler, and return the policy's decision on a job.

    Raises:
        LifecycleError: the cluster isn't up, its scheduler doesn't respond, or it has no such job.
    """
    cluster = open_cluster(target, running=True)
    require_slurm(
        cluster.spec,
        "moves no job to another pool: jobs spill under Slurm only",
        hint=f"gcluster status {cluster.name} says why a job waits",
    )
    refuse_without_pools(cluster)
    with SshSession(cluster.workdir) as session:
        try:
            seen = scheduler_of(cluster, session).observe()
        except SchedulerSilent as error:
            raise silent(error) from error
    found = next((each for each in seen.jobs if each.job.id == job), None)
    if found is None:
        raise failure(
            "GC941",
            f"no job {job} waits or runs",
            hint="squeue lists them; an array is one job here, by its number",
            exit_code=Exit.USAGE,
        )
    fold = BurstLedger(cluster.events).read()
    records = (fold.nodes[node] for node in found.nodes if node in fold.nodes)
    explained = Explained(
        job=job,
        partition=found.partition,
        nodes=tuple(
            RentedNode(node=r.node, step=r.step, option=r.option, reason=r.reason) for r in records
        ),
        moved=fold.moved.get(job),
    )
    for spilling in spillings(cluster.spec, cluster.catalog):
        if spilling.rule.partition != found.partition or found.nodes:
            continue
        pools = elastic_pools(cluster.spec, cluster.catalog)
        closed = closed_reason(pools, spilling, fold, seen)
        verdict = judge(spilling, fold, seen, closed)
        return msgspec.structs.replace(
            explained,
            pool=spilling.rule.target.pool,
            closed=closed,
            decision=next((each for each in verdict.decisions if each.job == job), None),
            promise=fold.promises.get(found.partition),
        )
    return explained
