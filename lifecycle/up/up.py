"""From a spec to a running, tested cluster; safe to repeat, safe to kill, resumes where it was."""

from __future__ import annotations

from collections.abc import Callable

from ..bundle.active import Bundle
from ..cluster.cluster import Cluster
from ..cluster.progress import Reporter
from ..nodes.ssh import SshSession
from ..planning.changes import Plan
from ..planning.plan_file import PlanFile, holding
from ..planning.purchase.decision import NO_WISHES, OptionOverrides
from ..scheduler.phases import phases_of
from ..state import acquire
from .apply import BEGIN, NODES, OBSERVE_AGAIN, PROVE, SITES
from .phase import Phase, SchedulerPhases, UpResult, UpState, run_phases
from .prepare import CONFIRM, OBSERVE_AND_PLAN
from .run import Run


def before_lock(scheduler: SchedulerPhases) -> tuple[Phase, ...]:
    """Return the phases that observe, plan and confirm."""
    return (*OBSERVE_AND_PLAN, *scheduler.check, *CONFIRM, *scheduler.prepare)


def under_lock(scheduler: SchedulerPhases) -> tuple[Phase, ...]:
    """Return the phases that change the cluster and prove it."""
    return (
        *BEGIN,
        *scheduler.before_sites,
        *SITES,
        *scheduler.after_sites,
        *OBSERVE_AGAIN,
        *scheduler.before_nodes,
        *NODES,
        *scheduler.after_nodes,
        *PROVE,
    )


def up(
    cluster: Cluster,
    report: Reporter,
    *,
    confirm: Callable[[Plan], bool],
    wishes: OptionOverrides = NO_WISHES,
    requeue_jobs: bool = False,
    bundle: Bundle | None = None,
    approved: PlanFile | None = None,
    allow: frozenset[str] = frozenset(),
) -> UpResult:
    """Apply the spec to the cluster, and prove it with the AllReduce.

    Args:
        cluster: what to bring up.
        report: receives progress and findings.
        confirm: receives the plan when there is something to do; if it returns False, nothing is
            changed.
        wishes: the user's choices for pools, by name.
        requeue_jobs: requeues jobs on nodes that must be drained instead of waiting for their end.
        bundle: the source of all software of the nodes; it is checked before anything is changed.
        approved: the only plan that may be applied; there is no confirmation then.
        allow: names of what a guard blocks (`lifecycle.planning.guards`).

    Raises:
        LifecycleError: refused, locked, or a step that nothing can continue without failed.
        ProviderError: a site could not be brought up.
    """
    scheduler = phases_of(cluster.spec)
    state = UpState(
        cluster=cluster,
        report=report,
        confirm=confirm,
        wishes=wishes,
        requeue_jobs=requeue_jobs,
        bundle=bundle,
        approved=approved,
        allow=allow,
    )
    with SshSession(cluster.workdir) as session:
        state.session = session
        run_phases(before_lock(scheduler), state)
    if state.result is not None:
        return state.result
    cluster.identify()
    with (
        acquire(cluster.store, tuple(cluster.spec.sites), reason="up") as lock,
        SshSession(cluster.workdir) as session,  # a `down` that has the lock removes its folder
        holding(cluster, approved),
        Run(cluster, "up", lock) as run,
    ):
        state.session, state.run = session, run
        run_phases(under_lock(scheduler), state)
        if state.result is None:
            raise AssertionError("the last phase sets the result")
        run.finish(state.result.exit_code)
        return state.result
