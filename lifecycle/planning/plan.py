"""What `up` would do: the difference between the compiled spec and an observation, as values.

Pending steps are folded over hosts, each line with what it does to a node in use.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from ...inventory.compile.steps import CHANGING_PHASES, Step
from ...schemas.cost.pools import usd_per_hour
from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..cluster.cluster import Cluster
from ..cluster.sites import fallback_lists_of, open_sites
from ..kubernetes.fitness import kubernetes_findings, skew_findings
from ..kubernetes.release.source import describe_source
from ..kubernetes.settle import objects_plan
from ..nodes.converge.pending import Pending, Scope, pending_steps
from ..nodes.ssh import SshSession
from ..operations.repair.queue import queue
from ..operations.rolling.change import in_service, must_roll
from ..scheduler.accounting.plan import AccountingPlan
from ..scheduler.accounting.settle import accounting_plan
from ..scheduler.select import node_jobs
from ..secrets.encryption import other_provider
from ..state import Journal
from ..state.audit.built import built, upgrade_lines
from ..status.drift.node_reports import see_changes, unfixable_findings
from ..status.observe import Observation, observe
from ..up.compiled import Compiled, compile_for
from .changes import Disruption, Plan, RemovedNode, StepChange
from .guards import ever_converged, guards, removed_nodes
from .job_impact import query_job_impact
from .lost_data import lost_data_guards
from .purchase.fallback_lists import FallbackLists, committed_usd, fallback_views
from .slurm_upgrade import slurm_upgrade_findings
from .spec_fields import field_lines

NOT_THERE = "this node isn't there yet"
NOT_RUNNING = "unknown while the node doesn't run"


def step_changes(
    spec: ClusterSpec,
    pending: Pending,
    observation: Observation,
    jobs: Mapping[str, Collection[str]] | None = None,
) -> tuple[StepChange, ...]:
    """Return one line for each step, pool, reason and disruption, in the order they run.

    Args:
        spec: has each pool's policy for changes.
        pending: what must run.
        observation: what exists.
        jobs: node -> jobs on it; None: not queried.
    """
    there = {host.name for host in observation.existing.hosts}
    rolling = must_roll(pending, in_service(observation.existing, observation.stamps))
    sizes = Counter(host.pool for host in observation.desired.hosts)
    changes: list[StepChange] = []
    for item in pending.steps:
        acts = item.step.phase in CHANGING_PHASES
        alike: dict[tuple[str, Disruption], list[str]] = defaultdict(list)
        for host, reason in item.hosts.items():
            if host in observation.unreachable:
                continue
            if host not in there:
                alike[NOT_THERE, "none"].append(host)
            elif host not in observation.stamps:  # stopped, so its stamps were not read
                alike[NOT_RUNNING, "none"].append(host)
            elif acts:
                alike[reason, "rolling" if host in rolling else "in-place"].append(host)
            else:
                alike[reason, "none"].append(host)
        for (reason, disruption), hosts in alike.items():
            rolls = disruption == "rolling"
            changes.append(
                StepChange(
                    step=item.step.key,
                    pool=item.pool,
                    hosts=fold(hosts),
                    count=len(hosts),
                    reason=reason + _restarts(item.step, rolls=rolls),
                    disruption=disruption,
                    at_once=spec.pools[item.pool].update.at_once(sizes[item.pool]) if rolls else 0,
                    jobs=_jobs(hosts, jobs) if rolls else None,
                    digest=item.digest,
                )
            )
    return tuple(changes)


def _restarts(step: Step, *, rolls: bool) -> str:
    """Return a note on restarts that a step may cause: on nodes in service by `boot.reboot`."""
    policy = step.variables.get(f"{step.role}_reboot", "never")
    kernel = ("kernel_version", "kernel_boot_parameters", "kernel_hugepages_gib")
    due = step.role != "kernel" or any(step.variables.get(name) for name in kernel)
    allowed = policy == "when-drained" or (policy == "auto" and not rolls)
    return "; may restart the node" if due and allowed else ""


def _jobs(hosts: Collection[str], jobs: Mapping[str, Collection[str]] | None) -> int | None:
    return None if jobs is None else len({job for host in hosts for job in jobs.get(host, ())})


def make_plan(cluster: Cluster) -> Plan:
    """Observe the cluster and return what `up` would do. Changes nothing."""
    sites = open_sites(cluster)
    with SshSession(cluster.workdir) as session:
        observation = observe(cluster, sites, session, guess=True)
        compiled = compile_for(cluster, observation)
        changes = see_changes(cluster, observation, compiled.cluster, session)
        fallbacks = fallback_lists_of(cluster, sites)
        plan = plan_with_jobs(cluster, changes.observation, session, compiled, fallbacks)
        return replace(
            plan,
            diagnostics=(*plan.diagnostics, *unfixable_findings(cluster.name, changes.unfixable)),
        )


def plan_with_jobs(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    compiled: Compiled,
    fallbacks: FallbackLists | None = None,
    *,
    scope: Scope | None = None,
) -> Plan:
    """Return the plan; where it would drain nodes, the scheduler is queried for their jobs.

    With `scope` it is the plan of that part, without accounts, maintenance windows and objects.
    """
    pending = pending_for(cluster, compiled, observation)
    if scope is not None:
        pending = scope.of(pending)
    rolls = must_roll(pending, in_service(observation.existing, observation.stamps))
    jobs = node_jobs(cluster.spec, session, observation.existing) if rolls else None
    now = int(time.time())
    accounting = (
        None if scope is not None else accounting_plan(cluster.spec, observation, session, now)
    )
    plan = _plan(cluster, observation, pending, fallbacks, jobs=jobs, accounting=accounting)
    before = Journal(cluster.events).built()
    refused = slurm_upgrade_findings(cluster.applied_spec, before, cluster.spec, cluster.catalog)
    plan = replace(
        plan,
        upgrades=upgrade_lines(before, built(compiled.cluster)),
        diagnostics=(*plan.diagnostics, *refused),
    )
    if scope is None and isinstance(cluster.spec.scheduler, KubernetesScheduler):
        plan = _with_kubernetes(cluster, plan, observation, session)
    return _guarded(cluster, plan, observation, session, rolls)


def _with_kubernetes(
    cluster: Cluster, plan: Plan, observation: Observation, session: SshSession
) -> Plan:
    """Add what is applied to Kubernetes, its source, and what blocks it."""
    bundle = cluster.kubernetes
    refused: list[Diagnostic] = []
    return replace(
        plan,
        objects=objects_plan(cluster, observation, session, refused.append),
        kubernetes="" if bundle is None else describe_source(bundle),
        diagnostics=(
            *plan.diagnostics,
            *kubernetes_findings(cluster, observation.desired),
            *skew_findings(plan.upgrades, observation),
            *refused,
        ),
    )


def _guarded(
    cluster: Cluster,
    plan: Plan,
    observation: Observation,
    session: SshSession,
    rolls: Collection[str],
) -> Plan:
    """Compare the plan with what was applied: differences, affected jobs, what must be named."""
    before = cluster.applied_spec
    if before is None:
        return plan
    ever = ever_converged(cluster.events)
    gone = tuple(
        node
        for node in removed_nodes(plan.sites)
        if node.name in ever and node.name not in observation.aside
    )
    gone += tuple(
        RemovedNode(name=name, pool=pool, replaced=False)
        for name, pool in observation.leaving.items()
    )
    touched = {*rolls, *(node.name for node in gone)}
    hosts = observation.existing if observation.existing.has_scheduler else observation.present
    job_impact = query_job_impact(before, session, hosts, touched) if touched else None
    return replace(
        plan,
        fields=field_lines(before, cluster.spec),
        job_impact=job_impact,
        guards=(
            *lost_data_guards(cluster, observation),
            *guards(
                before=before,
                after=cluster.spec,
                gone=gone,
                existing=observation.existing,
                surplus=observation.surplus,
                job_impact=job_impact,
                usd_per_hour=(
                    usd_per_hour(before, cluster.catalog).usd_per_hour,
                    plan.worst_usd_per_hour,
                ),
            ),
        ),
    )


def pending_for(cluster: Cluster, compiled: Compiled, observation: Observation) -> Pending:
    """Return the steps whose stamp on the node differs from the compiled spec.

    Nodes that were given up are left out.
    """
    secrets = cluster.secret_versions(compiled.cluster)
    pending = pending_steps(compiled.cluster, observation.stamps, secrets)
    if not observation.aside:
        return pending
    hosts = frozenset(host.name for host in observation.desired.hosts)
    return pending.for_hosts(hosts - observation.aside.keys())


def _plan(
    cluster: Cluster,
    observation: Observation,
    pending: Pending,
    fallbacks: FallbackLists | None,
    *,
    jobs: Mapping[str, Collection[str]] | None,
    accounting: AccountingPlan | None,
) -> Plan:
    """Compare; the same spec, observation, fallback lists, jobs and books, the same plan."""
    cost = usd_per_hour(cluster.spec, cluster.catalog)
    return Plan(
        cluster=cluster.name,
        spec_hash=cluster.spec_hash,
        sites=observation.sites,
        steps=step_changes(cluster.spec, pending, observation, jobs),
        unreachable=tuple(
            f"{host}: {reason}" for host, reason in sorted(observation.unreachable.items())
        ),
        usd_per_hour=cost.usd_per_hour_now if fallbacks is None else committed_usd(fallbacks, cost),
        worst_usd_per_hour=cost.usd_per_hour,
        observed_age_s=round(observation.age_s, 1),
        diagnostics=(*cluster.warnings, *other_provider(cluster)),
        fallback_lists=() if fallbacks is None else fallback_views(fallbacks),
        accounting=accounting,
        repairs=queue(cluster.events),
    )
