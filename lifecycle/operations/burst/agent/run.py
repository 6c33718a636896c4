"""The agent of a running cluster: opens and locks it, and runs until it is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .....schemas.derived.control_planes import managed_by
from .....schemas.spec import KubernetesScheduler
from ....cluster.cluster import Cluster, open_cluster
from ....cluster.hosts import existing_hosts
from ....cluster.outcome import Exit, LifecycleError, failure
from ....cluster.sites import open_sites
from ....kubernetes.managed.login import kubectl_of
from ....nodes.ssh import SshSession
from ....state import acquire, applied_number
from ....up.run import Run
from ...selection import require_slurm
from ..kubernetes import KubernetesController
from ..kubernetes.shapes import elastic_shapes
from ..lock import LOCK
from ..slurm import SlurmController
from .calls import AgentEvent, CallPool
from .ledger import BurstLedger
from .loop import Agent, is_fault
from .scheduler import BurstScheduler, SchedulerSilent
from .setup import (
    elastic_pools,
    gpu_models,
    permanent_nodes,
    spillings,
)
from .work import ProviderWork


def run_agent(
    target: str, *, once: bool, interval_s: float, say: Callable[[AgentEvent], None]
) -> bool:
    """Run rounds until the process ends, or another spec of the cluster is applied.

    Args:
        target: path of a spec, or name of a cluster.
        once: run one round, and wait for the calls that it begins.
        interval_s: seconds between two polls of the scheduler.
        say: receives all events as text.

    Returns:
        Whether the spec changed: the caller must restart the agent.

    Raises:
        LifecycleError: the cluster isn't up, has no elastic pool, or another agent runs (exit code
            LOCKED). With `once` also: the scheduler doesn't respond.
    """
    cluster = open_cluster(target, running=True)
    refuse_without_pools(cluster)
    began = applied_number(cluster.store)
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, [LOCK], reason="burst agent") as lock,
        Run(cluster, "burst agent", lock) as run,
    ):
        for note in lock.notes:
            say(AgentEvent(what="note", reason=note.summary))
        with _call_pool(say) as call_pool:
            agent = Agent(
                pools=elastic_pools(cluster.spec, cluster.catalog),
                spills=spillings(cluster.spec, cluster.catalog),
                always=permanent_nodes(cluster.spec),
                scheduler=scheduler_of(cluster, session),
                work=ProviderWork(cluster, open_sites(cluster), session, run.directory),
                ledger=BurstLedger(cluster.events),
                call_pool=call_pool,
                say=say,
            )
            changed = _rounds(agent, cluster, began, once=once, interval_s=interval_s)
        run.finish(Exit.OK)
        if changed:
            say(AgentEvent(what="spec-changed"))
        return changed


def _rounds(agent: Agent, cluster: Cluster, began: int, *, once: bool, interval_s: float) -> bool:
    if once:
        try:
            agent.once()
        except SchedulerSilent as error:
            raise silent(error) from error
        return False
    while applied_number(cluster.store) == began:
        agent.round()
        agent.pause(interval_s)
    return True


@contextmanager
def _call_pool(say: Callable[[AgentEvent], None]) -> Iterator[CallPool]:
    call_pool = CallPool(
        is_fault=is_fault, on_error=lambda error: say(AgentEvent(what="failed", reason=str(error)))
    )
    try:
        yield call_pool
    finally:
        call_pool.close()


def refuse_without_pools(cluster: Cluster) -> None:
    """Refuse a cluster that was never brought up, or has no elastic pool.

    Raises:
        LifecycleError: GC908 or GC941; GC1031 without a scheduler, and where a cloud's control
            plane sizes the pools.
    """
    if managed_by(cluster.spec) is not None or not isinstance(
        cluster.spec.scheduler, KubernetesScheduler
    ):
        require_slurm(
            cluster.spec,
            "has no nodes that the burst agent brings",
            hint="under eks, gke and aks the cloud's autoscaler sizes elastic pools; elsewhere "
            "write count, then gcluster up",
        )
    if not cluster.was_applied:
        hint = f"gcluster up {cluster.spec_path}"
        raise failure("GC908", f"{cluster.name} has no nodes", hint=hint)
    if not elastic_pools(cluster.spec, cluster.catalog):
        raise failure(
            "GC941",
            f"no pool of {cluster.name} has nodes that come and go",
            hint="count: {min: 0, max: 16} in a pool",
            exit_code=Exit.USAGE,
        )


def silent(error: SchedulerSilent) -> LifecycleError:
    """Return the error for a scheduler that doesn't respond to a single query."""
    return failure("GC921", f"the scheduler doesn't answer: {error}")


def scheduler_of(cluster: Cluster, session: SshSession) -> BurstScheduler:
    """Return the cluster's scheduler, queried on its controller; raises LifecycleError."""
    hosts = existing_hosts(cluster)
    controllers = hosts.with_role("controller")
    if not controllers:
        raise failure("GC908", f"{cluster.name} has no controller that can be queried")
    session.trust(hosts.hosts)
    if isinstance(cluster.spec.scheduler, KubernetesScheduler):
        shapes = elastic_shapes(cluster.spec, hosts, cluster.catalog)
        return KubernetesController(kubectl_of(session, hosts), shapes)
    return SlurmController(session, controllers, gpu_models(cluster.spec, cluster.catalog))
