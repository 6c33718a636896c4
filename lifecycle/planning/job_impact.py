"""Impact of a plan on jobs: users on the nodes that it changes, the queue, removed nodes.

Nodes of a cloud have other names in its program, or are grouped in one resource. What a resource
buys is known offline, from the applied and the new spec.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...inventory.hosts import ClusterInventory
from ...schemas.derived.control_planes import managed_pools
from ...schemas.derived.hostlist import expand, fold
from ...schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler
from ...stacks.provider import ResourceChange
from ..cluster.open_site import OpenSite
from ..kubernetes.kubectl import ApiRefused, ApiSilent
from ..kubernetes.managed.login import kubectl_of
from ..kubernetes.workloads import see_work
from ..nodes.ssh import SshSession, Unreachable
from ..scheduler.processes import Processes
from ..status.slurm import answered, nodes_and_jobs_command
from .changes import JobImpact, RemovedNode

_QUERY = nodes_and_jobs_command("--format='%A|%u|%N'")
_COLUMNS = 3
_LIMIT_S = 30


def query_job_impact(
    spec: ClusterSpec, session: SshSession, existing: ClusterInventory, nodes: Collection[str]
) -> JobImpact | None:
    """Query the scheduler, or without one the nodes; None where no controller runs.

    Args:
        spec: as it was applied: its scheduler is the one that runs.
        session: how the controllers are reached.
        existing: hosts that exist.
        nodes: those that a plan changes.
    """
    if isinstance(spec.scheduler, NoScheduler):
        return _of_processes(session, existing, nodes)
    if not existing.has_scheduler:
        return None
    if isinstance(spec.scheduler, KubernetesScheduler):
        return _of_kubernetes(session, existing, nodes)
    here = next(h for h in existing.with_role("controller") if h.connection == "ssh")
    answer = session.run_many([here], _QUERY, timeout_s=_LIMIT_S)[here.name]
    if isinstance(answer, Unreachable):
        return JobImpact(problem=f"{here.name}: {answer.reason}")
    lines = answered(answer.stdout)[1] if answer.returncode == 0 else None
    if lines is None:
        return JobImpact(problem=f"{here.name}: the scheduler gave no answer")
    return read_job_impact(lines, nodes)


def _of_processes(
    session: SshSession, existing: ClusterInventory, nodes: Collection[str]
) -> JobImpact:
    """Query the nodes: users' processes count as jobs, and there is no queue."""
    uses = Processes(session, existing.with_role("compute")).every_node()
    silent = [name for name, use in uses.items() if use.silent and name in nodes]
    if silent:
        return JobImpact(problem=f"{fold(silent)}: no answer")
    jobs = [job for name, use in uses.items() if name in nodes for job in use.jobs]
    return JobImpact(
        queue=sum(len(use.jobs) for use in uses.values()),
        jobs=tuple(jobs),
        users=tuple(sorted({job.partition(":")[0] for job in jobs})),
    )


def _of_kubernetes(
    session: SshSession, existing: ClusterInventory, nodes: Collection[str]
) -> JobImpact:
    """Query the API: it has accounts, which are namespaces, and no user names."""
    try:
        work = see_work(kubectl_of(session, existing))
    except (ApiRefused, ApiSilent) as error:
        return JobImpact(problem=f"the scheduler gave no answer: {error}")
    job_impact = [one for one in work if not one.nodes.isdisjoint(nodes)]
    return JobImpact(
        queue=len(work),
        jobs=tuple(one.id for one in job_impact),
        users=tuple(sorted({one.namespace for one in job_impact})),
    )


def read_job_impact(lines: Collection[str], nodes: Collection[str]) -> JobImpact:
    """Read squeue's lines ("JOB|USER|NODES") against the nodes in question."""
    touched = set(nodes)
    rows = [row for line in lines if len(row := line.split("|")) == _COLUMNS]
    job_impact = [
        (job, user) for job, user, where in rows if where and touched & set(expand(where))
    ]
    return JobImpact(
        queue=len(rows),
        jobs=tuple(dict.fromkeys(job for job, _ in job_impact)),
        users=tuple(sorted({user for _, user in job_impact})),
    )


def removed_with(
    site: OpenSite, changes: Iterable[ResourceChange], applied: ClusterSpec | None
) -> tuple[RemovedNode, ...]:
    """Return the nodes that the spec drops, and those whose resource is removed or recreated.

    Nodes of a cloud's control plane are identified by their machines' ids (`leaving_nodes`).

    Args:
        site: has the spec that is to be applied.
        changes: what its apply would do.
        applied: the spec as it was applied; None: nothing was, so nothing is removed.

    Raises:
        ProviderError: the spec that was applied can't be planned.
    """
    provider, wanted = site.provider, site.context.spec
    if applied is None or site.name not in applied.sites or not provider.has_purchase_options:
        return ()
    kept = {host.name for host in provider.planned_hosts(wanted, site.name)}
    found = {
        host.name: RemovedNode(name=host.name, pool=host.pool, replaced=False)
        for host in provider.planned_hosts(applied, site.name)
        if host.name not in kept
    }
    ends = {c.resource.name: c.effect for c in changes if c.effect in {"replace", "delete"}}
    bought = provider.purchases(applied, site.name) if ends else {}
    for name in ends.keys() & bought.keys():
        for node in bought[name].nodes:
            found.setdefault(
                node, RemovedNode(name=node, pool=bought[name].pool, replaced=node in kept)
            )
    run = managed_pools(applied) | managed_pools(wanted)
    return tuple(node for _, node in sorted(found.items()) if node.pool not in run)
