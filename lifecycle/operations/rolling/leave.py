"""Nodes that leave the cluster for good: no new job starts there, and running ones end first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ....schemas.derived.hostlist import fold
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec, Update
from ...cluster.outcome import Exit, LifecycleError
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ...planning.changes import RemovedNode
from ...scheduler.base import MARK, NodeUse, Scheduler, SchedulerSilent
from .roll import POLL_S, Clock, Patient

WHY = f"{MARK}leaves the cluster"
"""The reason that the scheduler shows for a node that is about to be removed."""


def empty(
    policies: Mapping[str, Update],
    service: Scheduler,
    *,
    requeue: bool,
    emit: Callable[[str], None],
    clock: Clock,
) -> dict[str, tuple[str, ...]]:
    """Drain nodes and wait for their jobs; return node -> jobs of those whose patience ran out.

    Where any is returned, all nodes that were taken out for this are back in service. A node that
    the scheduler doesn't know, or that doesn't answer it, holds nothing up.

    Args:
        policies: node -> how its pool waits for jobs, or puts them back in line.
        service: the scheduler.
        requeue: puts jobs back in line whatever the pools say.
        emit: receives in words what is waited for.
        clock: the time.

    Raises:
        SchedulerSilent: nobody knows what runs where.
    """
    began = clock.now()
    uses = _answering(service.nodes(policies))
    service.drain([node for node, use in uses.items() if not use.out], WHY)
    impatient = [node for node in uses if requeue or policies[node].jobs == "requeue"]
    if jobs := list(dict.fromkeys(job for node in impatient for job in uses[node].jobs)):
        service.requeue(jobs)
    while busy := {n: u for n, u in _answering(service.nodes(uses)).items() if u.jobs}:
        late = [node for node in busy if clock.now() - began >= policies[node].wait_s]
        if late:
            now = service.nodes(uses)
            service.resume([n for n, use in now.items() if use.out and use.reason == WHY])
            return {node: busy[node].jobs for node in late}
        emit("waiting for " + ", ".join(f"{n} (job {' '.join(u.jobs)})" for n, u in busy.items()))
        clock.sleep(POLL_S)
    return {}


def _answering(uses: Mapping[str, NodeUse]) -> dict[str, NodeUse]:
    return {node: use for node, use in uses.items() if not use.silent}


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
    """Take nodes out of service before their machines go; nobody's job goes with them.

    Args:
        spec: says how each pool treats jobs; a pool that it drops waits as by default.
        nodes: those that go.
        service: the scheduler.
        report: gets what is waited for.
        requeue: puts jobs back in line whatever the pools say.
        allow: names such as `pool:train` whose nodes go though the scheduler gives no answer.
        staying: the other nodes of their pools: of these the idle ones are named.
        clock: the time.

    Raises:
        LifecycleError: GC1171, a job outlasts the patience of its pool, or the scheduler gives no
            answer (exit code REFUSED). The nodes are in service as before.
    """
    clock = clock or Clock()
    pools = {node.name: node.pool for node in nodes}
    policies = {
        name: spec.pools[pool].update if pool in spec.pools else Update()
        for name, pool in pools.items()
    }

    def emit(detail: str) -> None:
        report(StageProgress(name="drain", done=0, total=0, detail=detail))

    began = clock.now()
    report(StageStarted(name="drain", total=len(pools)))
    try:
        busy = empty(policies, Patient(service, clock), requeue=requeue, emit=emit, clock=clock)
    except SchedulerSilent as silent:
        guarded = {f"pool:{pool}" for pool in pools.values()} - set(allow)
        if not guarded:
            return
        flags = " ".join(f"--allow {thing}" for thing in sorted(guarded))
        raise _refused(
            f"{fold(pools)} would be removed, and nobody knows what runs there: {silent}",
            hint=f"bring the controller back (gcluster repair), or {flags}",
        ) from silent
    if busy:
        wait = max(policies[node].wait_s for node in busy)
        jobs = "; ".join(f"{node}: job {', '.join(found)}" for node, found in busy.items())
        raise _refused(
            f"jobs still run after {wait:.0f} s on nodes that would be removed: {jobs}",
            hint="run up again later, or with --requeue-jobs",
            detail=_idle_instead(spec, pools, service, staying),
        )
    summary = f"{fold(pools)} free of jobs"
    report(StageFinished(name="drain", ok=True, summary=summary, seconds=clock.now() - began))


def _idle_instead(
    spec: ClusterSpec, pools: Mapping[str, str], service: Scheduler, staying: Collection[str]
) -> str:
    """Say which nodes of the same pools are idle, and how the spec has one of these go instead."""
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
