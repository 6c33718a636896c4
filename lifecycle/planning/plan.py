"""What `up` would do: the difference between the compiled spec and an observation, as values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.lifecycle.accounting.settle import books_plan
from gcluster.lifecycle.audit.built import built, upgrade_lines
from gcluster.lifecycle.converge.pending import Pending, pending_steps
from gcluster.lifecycle.ladders.view import ladder_views, usd_taken
from gcluster.lifecycle.observe import Observation, observe
from gcluster.lifecycle.planning.changes import Gone, Plan
from gcluster.lifecycle.planning.guards import gone_nodes, guards, served
from gcluster.lifecycle.planning.hit import ask_hit
from gcluster.lifecycle.planning.spec_fields import field_lines
from gcluster.lifecycle.planning.step_changes import step_changes
from gcluster.lifecycle.repair.queue import queue
from gcluster.lifecycle.rolling.jobs import jobs_on
from gcluster.lifecycle.rolling.plan import in_service, must_roll
from gcluster.lifecycle.secrets.encryption import other_provider
from gcluster.lifecycle.sites import ladders_of, open_sites
from gcluster.lifecycle.ssh import SshSession
from gcluster.lifecycle.state import Journal
from gcluster.schemas.cost import usd_per_hour
from gcluster.schemas.spec import KubernetesScheduler

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gcluster.lifecycle.accounting.plan import BooksPlan
    from gcluster.lifecycle.cluster import Cluster
    from gcluster.lifecycle.converge.scope import Scope
    from gcluster.lifecycle.ladders.standing import Ladders
    from gcluster.schemas.diagnostics import Diagnostic


def make_plan(cluster: Cluster) -> Plan:
    """Observe the cluster and say what `up` would do. Changes nothing."""
    sites = open_sites(cluster)
    with SshSession(cluster.workdir) as session:
        observation = observe(cluster, sites, session, guess=True)
        return plan_with_jobs(cluster, observation, session, ladders_of(cluster, sites))


def plan_with_jobs(
    cluster: Cluster,
    observation: Observation,
    session: SshSession,
    ladders: Ladders | None = None,
    *,
    scope: Scope | None = None,
) -> Plan:
    """Return the plan; where it would drain nodes, the scheduler is asked for their jobs.

    With `scope` it is the plan of that part, without accounts, maintenance windows and objects.
    """
    compiled = compile_for(cluster, observation)
    pending = pending_for(cluster, compiled, observation)
    if scope is not None:
        pending = scope.of(pending)
    rolls = must_roll(pending, in_service(observation.existing, observation.stamps))
    jobs = jobs_on(cluster.spec, session, observation.existing) if rolls else None
    now = int(time.time())
    books = None if scope is not None else books_plan(cluster.spec, observation, session, now)
    plan = _plan(cluster, observation, pending, ladders, jobs=jobs, books=books)
    before = Journal(cluster.events).built()
    plan = replace(plan, upgrades=upgrade_lines(cluster.store, before, built(compiled)))
    if scope is None and isinstance(cluster.spec.scheduler, KubernetesScheduler):
        plan = _with_kubernetes(cluster, plan, observation, session)
    return _guarded(cluster, plan, observation, session, rolls)


def _with_kubernetes(
    cluster: Cluster, plan: Plan, observation: Observation, session: SshSession
) -> Plan:
    """Add what Kubernetes is told, where it comes from, and what stands in the way."""
    from gcluster.lifecycle.kubernetes.fitness import (  # noqa: PLC0415  # only for Kubernetes
        kubernetes_findings,
    )
    from gcluster.lifecycle.kubernetes.settle import objects_plan  # noqa: PLC0415
    from gcluster.lifecycle.kubernetes.skew import skew_findings  # noqa: PLC0415
    from gcluster.lifecycle.kubernetes.source import how_it_stands  # noqa: PLC0415

    bundle = cluster.kubernetes
    refused: list[Diagnostic] = []
    return replace(
        plan,
        objects=objects_plan(cluster, observation, session, refused.append),
        kubernetes="" if bundle is None else how_it_stands(bundle),
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
    """Hold the plan against what was applied: what differs, whom it hits, what must be named."""
    before = cluster.applied_spec
    if before is None:
        return plan
    ever = served(cluster.events)
    gone = tuple(
        node
        for node in gone_nodes(plan.sites)
        if node.name in ever and node.name not in observation.aside
    )
    gone += tuple(
        Gone(name=name, pool=pool, replaced=False) for name, pool in observation.leaving.items()
    )
    touched = {*rolls, *(node.name for node in gone)}
    hit = ask_hit(before, session, observation.existing, touched) if touched else None
    return replace(
        plan,
        fields=field_lines(before, cluster.spec),
        hit=hit,
        guards=guards(
            before=before,
            after=cluster.spec,
            gone=gone,
            existing=observation.existing,
            surplus=observation.surplus,
            hit=hit,
            usd_per_hour=(
                usd_per_hour(before, cluster.catalog).usd_per_hour,
                plan.worst_usd_per_hour,
            ),
        ),
    )


def compile_for(cluster: Cluster, observation: Observation) -> CompiledCluster:
    """Compile the spec for the hosts that it asks for; what was compiled last is kept."""
    made_of = (observation.desired, cluster.bundle, cluster.kubernetes)
    if cluster.compiled is None or cluster.compiled[0] != made_of:
        desired, bundle, kubernetes = made_of
        compiled = compile_cluster(cluster.spec, desired, cluster.catalog, bundle, kubernetes)
        cluster.compiled = (made_of, compiled)
    return cluster.compiled[1]


def pending_for(cluster: Cluster, compiled: CompiledCluster, observation: Observation) -> Pending:
    """Return the steps whose stamp on the node differs from the compiled spec.

    Nodes that were given up are left out.
    """
    pending = pending_steps(compiled, observation.stamps, cluster.secret_versions(compiled))
    if not observation.aside:
        return pending
    hosts = frozenset(host.name for host in observation.desired.hosts)
    return pending.for_hosts(hosts - observation.aside.keys())


def _plan(
    cluster: Cluster,
    observation: Observation,
    pending: Pending,
    ladders: Ladders | None,
    *,
    jobs: Mapping[str, Collection[str]] | None,
    books: BooksPlan | None,
) -> Plan:
    """Compare; the same spec, observation, ladders, jobs (by node) and books, the same plan."""
    cost = usd_per_hour(cluster.spec, cluster.catalog)
    return Plan(
        cluster=cluster.name,
        spec_hash=cluster.spec_hash,
        sites=observation.sites,
        steps=step_changes(cluster.spec, pending, observation, jobs),
        unreachable=tuple(
            f"{host}: {reason}" for host, reason in sorted(observation.unreachable.items())
        ),
        usd_per_hour=cost.usd_per_hour_now if ladders is None else usd_taken(ladders, cost),
        worst_usd_per_hour=cost.usd_per_hour,
        observed_age_s=round(observation.age_s, 1),
        diagnostics=(*cluster.warnings, *other_provider(cluster)),
        ladders=() if ladders is None else ladder_views(ladders),
        books=books,
        repairs=queue(cluster.events),
    )
