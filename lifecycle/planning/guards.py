"""What a plan may only do when it is named: each guard is one action with a name.

`--allow controller:head01` lets that controller be replaced and no other; there is no flag for all.
A node that never came up guards nothing: it is unused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from ...inventory.hosts import ClusterInventory
from ...schemas.derived.hostlist import expand, fold, host_order
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, SlurmScheduler
from ..cluster.outcome import Exit, LifecycleError
from ..down.data import is_made
from ..operations.database_state import owns_database
from ..state import EventLog, HostsConverged
from .changes import Guard, JobImpact, Plan, RemovedNode, SitePlan

MOST_AT_ONCE = 0.5
"""Share of a pool that may be replaced or destroyed in one go; of two nodes that is one."""


def removed_nodes(sites: Iterable[SitePlan]) -> tuple[RemovedNode, ...]:
    """Return the nodes that would not survive."""
    plans = tuple(sites)
    named = (
        RemovedNode(
            name=change.resource.name,
            pool=change.resource.pool or "",
            replaced=change.effect == "replace",
        )
        for site in plans
        for change in site.changes
        if change.effect in {"replace", "delete"} and change.resource.kind == "node"
    )
    return (*named, *(node for site in plans for node in site.gone))


def ever_converged(log: EventLog) -> frozenset[str]:
    """Return the hosts that ever matched their spec: no others can have jobs or users on them."""
    return frozenset(
        host
        for event in log.read()
        if isinstance(event.body, HostsConverged) and event.body.hosts
        for host in expand(event.body.hosts)
    )


def guards(
    *,
    before: ClusterSpec,
    after: ClusterSpec,
    gone: tuple[RemovedNode, ...],
    existing: ClusterInventory,
    job_impact: JobImpact | None,
    usd_per_hour: tuple[float | None, float | None],
    surplus: Mapping[str, int] | None = None,
) -> tuple[Guard, ...]:
    """Return what has to be named, in the order of this module's head.

    Args:
        before: the spec that was applied.
        after: the spec to apply.
        gone: nodes that would not survive.
        existing: hosts that exist and are wanted.
        job_impact: the scheduler's report; None: no scheduler runs.
        usd_per_hour: the worst case before and after; None: unknown.
        surplus: pool -> number of further nodes that the cloud chooses and removes; none of
            `existing`.
    """
    return (
        *_controllers(before, gone, job_impact),
        *_accounts(before, gone, existing),
        *_storage(before, after),
        *_logins(before, gone, existing),
        *_pools(gone, existing, surplus or {}),
        *_slices(before, after, existing, job_impact),
        *_budget(after, *usd_per_hour),
    )


def refuse_guarded(plan: Plan, allowed: Collection[str]) -> None:
    """Refuse a plan with guarded actions that were not named.

    Raises:
        LifecycleError: GC909, one finding each with the flag that allows it (exit code REFUSED).
    """
    found = [
        Diagnostic(
            code="GC909",
            severity=Severity.ERROR,
            summary=f"not done unasked: {guard.reason}",
            detail="nothing was changed",
            hint=(f"{guard.hint}; " if guard.hint else "") + f"to do it: --allow {guard.thing}",
        )
        for guard in plan.guards
        if guard.thing not in allowed
    ]
    if found:
        raise LifecycleError(*found, exit_code=Exit.REFUSED)


def _role(spec: ClusterSpec, pool: str) -> str:
    return spec.pools[pool].role if pool in spec.pools else ""


def _controllers(
    before: ClusterSpec, gone: Iterable[RemovedNode], job_impact: JobImpact | None
) -> Iterator[Guard]:
    """A controller whose queue isn't known to be empty."""
    if job_impact is None or job_impact.queue == 0:
        return
    why = (
        f"its queue is unknown ({job_impact.problem})"
        if job_impact.queue is None
        else "jobs are in its queue"
    )
    for node in gone:
        if _role(before, node.pool) == "controller":
            what = "replaced" if node.replaced else "destroyed"
            yield Guard(
                thing=f"controller:{node.name}",
                reason=f"controller {node.name} would be {what}: {why}",
            )


def _accounts(
    before: ClusterSpec, gone: Iterable[RemovedNode], existing: ClusterInventory
) -> Iterator[Guard]:
    """The accounting database of the cluster's own, with its host."""
    slurm = before.scheduler
    if not owns_database(before) or not isinstance(slurm, SlurmScheduler):
        return
    named = slurm.accounting.pool if slurm.accounting else None
    lost = {node.name: node for node in gone if _may_have_it(before, node.pool, named)}
    others = {host.name for host in existing.hosts if _may_have_it(before, host.pool, named)}
    first = min(lost.keys() | others, key=host_order, default="")
    if first in lost:
        what = "replaced" if lost[first].replaced else "destroyed"
        yield Guard(
            thing=f"accounting:{first}",
            reason=f"{first} would be {what} with the accounting database",
            hint=f"gcluster backup {before.name}, then restore, takes it along",
        )


def _may_have_it(spec: ClusterSpec, pool: str, named: str | None) -> bool:
    return pool == named if named is not None else _role(spec, pool) == "controller"


def _storage(before: ClusterSpec, after: ClusterSpec) -> Iterator[Guard]:
    """Storage that was made for the cluster and that the spec has no more, with its data."""
    for name in before.storage:
        if name not in after.storage and is_made(before, name):
            yield Guard(
                thing=f"storage:{name}",
                reason=f"storage {name} is in the spec no more: its data would go",
            )


def _logins(
    before: ClusterSpec, gone: Iterable[RemovedNode], existing: ClusterInventory
) -> Iterator[Guard]:
    """The last login nodes: people would have no way in."""
    lost = [node.name for node in gone if _role(before, node.pool) == "login"]
    left = {host.name for host in existing.with_role("login")} - set(lost)
    if lost and not left:
        names = fold(lost)
        yield Guard(thing=f"login:{names}", reason=f"no login node would be left but {names}")


def _pools(
    gone: Iterable[RemovedNode], existing: ClusterInventory, surplus: Mapping[str, int]
) -> Iterator[Guard]:
    """More of a pool at once than `MOST_AT_ONCE`."""
    names = {node.name for node in gone}
    lost = Counter({**surplus}) + Counter(node.pool for node in gone)
    there = Counter(host.pool for host in existing.hosts if host.name not in names)
    for pool, count in lost.items():
        size = there[pool] + count
        if size > 1 and count > MOST_AT_ONCE * size:
            yield Guard(
                thing=f"pool:{pool}",
                reason=f"{count} of {size} nodes of pool {pool} would go at once",
            )


def _slices(
    before: ClusterSpec,
    after: ClusterSpec,
    existing: ClusterInventory,
    job_impact: JobImpact | None,
) -> Iterator[Guard]:
    """GPUs that are cut into other MIG slices, or are whole again, under jobs.

    gres.conf is one for all nodes and names slices by their files: Slurm ends jobs on slices when
    the number of these lines changes (gres.conf(5), MultipleFiles), and a slurmd that reads lines
    of files that aren't there yet ends.
    """
    if job_impact is None or job_impact.queue == 0:
        return
    there = {host.pool for host in existing.hosts}
    for name in sorted(before.pools.keys() & after.pools.keys() & there):
        slices = (spec.pools[name].gpus.mig_slices for spec in (before, after))
        if len({tuple(sorted(each.items())) for each in slices}) > 1:
            yield Guard(
                thing=f"slices:{name}",
                reason=f"the GPUs of pool {name} would be cut otherwise, which ends jobs on them",
                hint=f"gcluster drain its nodes, and go on when the queue of {after.name} is empty",
            )


def _budget(after: ClusterSpec, before: float | None, worst: float | None) -> Iterator[Guard]:
    """More than the spec's own ceiling, and more than until now: what the checks only warn of.

    That is where a price is known as a bound alone; what is certain is an error of the spec.
    """
    ceiling = after.budget.max_usd_per_hour if after.budget is not None else None
    if ceiling is None or worst is None or (before is not None and worst <= before):
        return
    if worst > ceiling:
        yield Guard(
            thing="budget",
            reason=f"the cluster could cost ${worst:,.2f}/h, and its budget is ${ceiling:,.2f}/h",
        )
