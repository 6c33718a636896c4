"""What Slurm adds to `up`, and the choice between the schedulers' phases."""

from __future__ import annotations

from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..kubernetes.phases import KUBERNETES_PHASES
from ..operations.queue_state import bring_queue
from ..up.phase import Phase, SchedulerPhases, UpState
from .accounting.settle import settle


def _restore_queue(state: UpState) -> None:
    bring_queue(state.cluster, state.after.existing, state.session, state.report)


def _settle_accounts(state: UpState) -> None:
    state.settled(settle(state.cluster, state.after, state.session, state.report))


SLURM_PHASES = SchedulerPhases(
    before_nodes=(
        Phase(
            "restore queue",
            _restore_queue,
            "The state names the queue to restore until a controller has it.",
        ),
    ),
    after_nodes=(
        Phase(
            "accounts",
            _settle_accounts,
            "Each change is one command of sacctmgr; what is missing is asked for again.",
        ),
    ),
)


def phases_of(spec: ClusterSpec) -> SchedulerPhases:
    """Return what the scheduler of a spec adds to `up`."""
    return KUBERNETES_PHASES if isinstance(spec.scheduler, KubernetesScheduler) else SLURM_PHASES
