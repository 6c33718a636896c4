"""What `up` would do: the difference between the compiled spec and an observation, as values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.lifecycle.accounting.settle import books_plan
from gcluster.lifecycle.changes import Plan
from gcluster.lifecycle.converge.pending import Pending, pending_steps
from gcluster.lifecycle.ladder_view import ladder_views, usd_taken
from gcluster.lifecycle.observe import Observation, observe
from gcluster.lifecycle.rolling.jobs import jobs_on
from gcluster.lifecycle.rolling.plan import in_service, must_roll
from gcluster.lifecycle.sites import ladders_of, open_sites
from gcluster.lifecycle.ssh import SshSession
from gcluster.lifecycle.step_changes import step_changes
from gcluster.schemas.cost import usd_per_hour

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gcluster.lifecycle.accounting.plan import BooksPlan
    from gcluster.lifecycle.cluster import Cluster
    from gcluster.lifecycle.ladders import Ladders


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
) -> Plan:
    """Return the plan; where it would drain nodes, the scheduler is asked for their jobs."""
    pending = pending_for(cluster, compile_for(cluster, observation), observation)
    rolls = must_roll(pending, in_service(observation.existing, observation.stamps))
    jobs = jobs_on(session, observation.existing) if rolls else None
    books = books_plan(cluster.spec, observation, session, int(time.time()))
    return _plan(cluster, observation, pending, ladders, jobs=jobs, books=books)


def compile_for(cluster: Cluster, observation: Observation) -> CompiledCluster:
    """Compile the spec for the hosts that it asks for."""
    return compile_cluster(cluster.spec, observation.desired, cluster.catalog, cluster.bundle)


def pending_for(cluster: Cluster, compiled: CompiledCluster, observation: Observation) -> Pending:
    """Return the steps whose stamp on the node differs from the compiled spec."""
    return pending_steps(compiled, observation.stamps, cluster.secret_versions(compiled))


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
        diagnostics=cluster.warnings,
        ladders=() if ladders is None else ladder_views(ladders),
        books=books,
    )
