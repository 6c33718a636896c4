"""Removal of nodes from the cluster: no new job starts there, and running ones end first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ....schemas.derived.hostlist import fold
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec, NoScheduler, Update
from ...cluster.outcome import Exit, LifecycleError
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ...planning.changes import RemovedNode
from ...scheduler.base import MARK, NodeUse, Scheduler, SchedulerSilent
from .roll import POLL_S, Clock, Patient

_NAMED = 10
"""Most jobs that are listed one by one."""
WHY = f"{MARK}leaves the cluster"
"""The reason that the scheduler shows for a node that is about to be removed."""


def empty(
    policies: Mapping[str, Update],
    service: Scheduler,
    *,
    requeue: bool,
    emit: Callable[[str], None],
    clock: Clock,
    going: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Drain nodes and wait for their jobs; return node -> jobs of those that timed out.

    Where any is returned, all nodes that were taken out for this are back in service. A node that
    is unknown to the scheduler, or down, is not waited for.

    Args:
        policies: node -> how its pool waits for jobs, or requeues them.
        service: the scheduler.
        requeue: requeues jobs whatever the pools say.
        emit: receives what is waited for, as text.
        clock: the time.
        going: those whose names are removed too, so that no job may request them.

    Raises:
        LifecycleError: queued jobs request a node that is removed (GC1171). SchedulerSilent: what
        runs where is unknown.
    """
    began = clock.now()
    uses = _answering(service.nodes(policies))
    service.drain([node for node, use in uses.items() if not use.out], WHY)
    impatient = [node for node in uses if requeue or policies[node].jobs == "requeue"]
    jobs = list(dict.fromkeys(job for node in impatient for job in uses[node].jobs))
    _refuse_pinned(going, jobs, uses, service)
    if jobs:
        service.requeue(jobs)
    while busy := {n: u for n, u in _answering(service.nodes(uses)).items() if u.jobs}:
        late = [node for node in busy if clock.now() - began >= policies[node].wait_s]
        if late:
            _give_back(uses, service)
            return {node: busy[node].jobs for node in late}
        emit("waiting for " + ", ".join(f"{n} (job {' '.join(u.jobs)})" for n, u in busy.items()))
        clock.sleep(POLL_S)
    _refuse_pinned(going, (), uses, service)  # some may have been submitted meanwhile
    return {}


def _answering(uses: Mapping[str, NodeUse]) -> dict[str, NodeUse]:
    return {node: use for node, use in uses.items() if not use.silent}


def _give_back(nodes: Collection[str], service: Scheduler) -> None:
    """Put back into service what was taken out for this."""
    now = service.nodes(nodes)
    service.resume([node for node, use in now.items() if use.out and use.reason == WHY])


def _refuse_pinned(
    going: Collection[str], requeued: Collection[str], nodes: Collection[str], service: Scheduler
) -> None:
    """Refuse to remove nodes that queued jobs request by name: the scheduler would cancel those.

    Args:
        going: nodes whose names are removed.
        requeued: running jobs that are about to be requeued.
        nodes: all that were taken out.
        service: the scheduler.

    Raises:
        LifecycleError: GC1171; the nodes are back in service.
    """
    pinned = service.pinned(going) if going else {}
    ended = [job for job, state in pinned.items() if state == "PENDING" or job in requeued]
    if not ended:
        return
    _give_back(nodes, service)
    jobs, first = ", ".join(ended[:_NAMED]), ended[0]
    more = f" and {len(ended) - _NAMED} more" if len(ended) > _NAMED else ""
    raise _refused(
        f"pending jobs request by name nodes that would be removed ({fold(going)}): {jobs}{more}",
        hint=f"scontrol update JobId={first} ReqNodeList= lets it run on any node, scancel {first} "
        "ends it; then run up again",
        detail="Slurm ends a job in line (NODE_FAIL) whose node its configuration no longer has",
    )


def leave(
    spec: ClusterSpec,
    nodes: Iterable[RemovedNode],
    service: Scheduler,
    report: Reporter,
    *,
    requeue: bool,
    allow: Collection[str],
    staying: Collection[str] = (),
    clock: Clock | None = None,
) -> None:
    """Take nodes out of service before their machines are removed, without killing jobs.

    Args:
        spec: says how each pool treats jobs; a pool that it drops waits as by default.
        nodes: those to remove.
        service: the scheduler.
        report: receives what is waited for.
        requeue: requeues jobs whatever the pools say.
        allow: names such as `pool:train` whose nodes are removed even if the scheduler doesn't
            respond.
        staying: the other nodes of their pools: of these the idle ones are named.
        clock: the time.

    Raises:
        LifecycleError: GC1171, a job outlasts the timeout of its pool, requests a node to remove by
            name, or the scheduler doesn't respond (exit code REFUSED). The nodes are in service as
            before.
    """
    clock = clock or Clock()
    nodes = tuple(nodes)
    pools = {node.name: node.pool for node in nodes}
    going = [node.name for node in nodes if not node.replaced]
    policies = {
        name: spec.pools[pool].update if pool in spec.pools else Update()
        for name, pool in pools.items()
    }

    def emit(detail: str) -> None:
        report(StageProgress(name="drain", done=0, total=0, detail=detail))

    began = clock.now()
    report(StageStarted(name="drain", total=len(pools)))
    try:
        patient = Patient(service, clock)
        busy = empty(policies, patient, requeue=requeue, emit=emit, clock=clock, going=going)
    except SchedulerSilent as silent:
        guarded = {f"pool:{pool}" for pool in pools.values()} - set(allow)
        if not guarded:
            return
        flags = " ".join(f"--allow {thing}" for thing in sorted(guarded))
        raise _refused(
            f"{fold(pools)} would be removed, and the jobs there are unknown: {silent}",
            hint=f"bring what doesn't answer back (gcluster repair), or {flags}",
        ) from silent
    if busy:
        wait = max(policies[node].wait_s for node in busy)
        jobs = "; ".join(f"{node}: job {', '.join(found)}" for node, found in busy.items())
        raise _refused(
            f"jobs still run after {wait:.0f} s on nodes that would be removed: {jobs}",
            hint="run up again once they have ended"
            if isinstance(spec.scheduler, NoScheduler)
            else "run up again later, or with --requeue-jobs",
            detail=_idle_instead(spec, pools, service, staying),
        )
    summary = f"{fold(pools)} free of jobs"
    report(StageFinished(name="drain", ok=True, summary=summary, seconds=clock.now() - began))


def _idle_instead(
    spec: ClusterSpec, pools: Mapping[str, str], service: Scheduler, staying: Collection[str]
) -> str:
    """Return which nodes of the same pools are idle, and the spec line that removes one of them."""
    try:
        uses = _answering(service.nodes(staying))
    except SchedulerSilent:
        return ""
    idle = [node for node in staying if node in uses and not (uses[node].jobs or uses[node].out)]
    if not idle:
        return ""
    named = [
        pool
        for pool in sorted(set(pools.values()) & spec.pools.keys())
        if spec.sites[spec.pools[pool].site].frees_any_machine
    ]
    if not named:
        return f"{fold(idle)} idle; a pool loses its last nodes, for its names follow its count"
    return (
        f"{fold(idle)} idle: a pool loses its last nodes, unless the spec says which names it "
        f"skips: pools.{named[0]}.skip: {idle[0]}"
    )


def _refused(summary: str, hint: str, detail: str = "") -> LifecycleError:
    return LifecycleError(
        Diagnostic(
            code="GC1171",
            severity=Severity.ERROR,
            summary=summary,
            detail="\n".join(filter(None, ("no node was removed", detail))),
            hint=hint,
        ),
        exit_code=Exit.REFUSED,
    )
