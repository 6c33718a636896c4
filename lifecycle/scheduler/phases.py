"""What Slurm and a cluster without a scheduler add to `up`, and the choice between them."""

from __future__ import annotations

from ...inventory.compile.slurm.daemons import MUNGE_SECRET
from ...schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler
from ..kubernetes.phases import KUBERNETES_PHASES
from ..operations.queue_state import bring_queue
from ..operations.rolling.leave import leave
from ..operations.rolling.roll import Clock
from ..operations.service import wait_for_answers
from ..planning.changes import RemovedNode
from ..planning.guards import removed_nodes
from ..up.phase import Phase, SchedulerPhases, UpState
from ..up.prepare import NOTHING_TO_RESUME
from .accounting.settle import settle
from .base import Scheduler
from .processes import Processes
from .select import has_observable_use, scheduler_of
from .slurm_build import build_slurm


def _leaving(state: UpState) -> tuple[RemovedNode, ...]:
    return tuple(n for n in removed_nodes(state.before.sites) if n.name not in state.before.aside)


def _have_jobs(state: UpState) -> bool:
    return has_observable_use(state.cluster.spec, state.before.present) and bool(_leaving(state))


def _of_leaving(state: UpState) -> Scheduler:
    """Return the scheduler of nodes to remove: without one these nodes, which must respond."""
    if isinstance(state.cluster.spec.scheduler, NoScheduler):
        compute = state.before.present.with_role("compute")
        return Processes(state.session, compute, must_answer=True)
    return scheduler_of(state.cluster.spec, state.before.existing, state.session)


def _empty_leaving(state: UpState) -> None:
    service = _of_leaving(state)
    leaving = _leaving(state)
    pools, names = {node.pool for node in leaving}, {node.name for node in leaving}
    leave(
        state.cluster.spec,
        leaving,
        service,
        state.report,
        requeue=state.requeue_jobs,
        allow=state.allow,
        staying=[
            host.name
            for host in state.before.existing.hosts
            if host.pool in pools and host.name not in names
        ],
    )


def _restore_queue(state: UpState) -> None:
    bring_queue(state.cluster, state.after.existing, state.session, state.report)


def _build_slurm(state: UpState) -> None:
    """Begin to build Slurm's packages; nodes wait for them where they need them."""
    cluster, compiled = state.cluster, state.compiled.cluster
    if not any(step.role == "slurm_packages" for g in compiled.groups for step in g.steps):
        return

    cluster.make_secrets(compiled)
    build_slurm(
        compiled,
        [h for h in state.after.existing.hosts if h.name not in state.after.unreachable],
        state.session,
        state.report,
        munge_key=cluster.vault.reveal(MUNGE_SECRET),
        serving=frozenset(n for n, steps in state.after.stamps.items() if "slurm.join" in steps),
    )


def _await_answers(state: UpState) -> None:
    """Wait until nodes have registered with slurmctld, after a restart of it or of them."""
    compute = state.nodes.inventory.with_role("compute")
    names = [host.name for host in compute if host.connection == "ssh"]
    if names and state.after.existing.has_scheduler:
        service = scheduler_of(state.cluster.spec, state.after.existing, state.session)
        wait_for_answers(service, names, Clock())


def _settle_accounts(state: UpState) -> None:
    state.settled(settle(state.cluster, state.after, state.session, state.report))


_EMPTY_LEAVING = Phase(
    "empty leaving nodes",
    _empty_leaving,
    "Drained nodes carry the run's mark; they are drained once and waited for again.",
    _have_jobs,
)

UNSCHEDULED_PHASES = SchedulerPhases(before_sites=(_EMPTY_LEAVING,))

SLURM_PHASES = SchedulerPhases(
    before_sites=(_EMPTY_LEAVING,),
    before_nodes=(
        Phase(
            "restore queue",
            _restore_queue,
            "The state names the queue to restore until a controller has it.",
        ),
        Phase(
            "build Slurm",
            _build_slurm,
            "A build goes on on its node, and is followed; what the mirror has isn't built again.",
        ),
    ),
    after_nodes=(
        Phase("await answers", _await_answers, NOTHING_TO_RESUME),
        Phase(
            "accounts",
            _settle_accounts,
            "Each change is one command of sacctmgr; what is missing is requested again.",
        ),
    ),
)


def phases_of(spec: ClusterSpec) -> SchedulerPhases:
    """Return what the scheduler of a spec adds to `up`."""
    if isinstance(spec.scheduler, NoScheduler):
        return UNSCHEDULED_PHASES
    return KUBERNETES_PHASES if isinstance(spec.scheduler, KubernetesScheduler) else SLURM_PHASES
