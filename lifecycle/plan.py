"""What `up` would do: the difference between the compiled spec and an observation, as values."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.lifecycle.changes import Disruption, Plan, StepChange
from gcluster.lifecycle.converge.pending import Pending, pending_steps
from gcluster.lifecycle.ladder_view import ladder_views
from gcluster.lifecycle.observe import Observation, observe
from gcluster.lifecycle.sites import ladders_of, open_sites
from gcluster.lifecycle.ssh import SshSession
from gcluster.schemas.cost import usd_per_hour
from gcluster.schemas.hostlist import fold

if TYPE_CHECKING:
    from gcluster.lifecycle.cluster import Cluster
    from gcluster.lifecycle.ladders import Ladders

NOT_THERE = "this node isn't there yet"

_CHANGES_A_RUNNING_NODE: frozenset[str] = frozenset({"install", "configure", "join"})
"""Phases that may restart a service; the others only look."""


def make_plan(cluster: Cluster) -> Plan:
    """Observe the cluster and say what `up` would do. Changes nothing."""
    sites = open_sites(cluster)
    with SshSession(cluster.workdir) as session:
        observation = observe(cluster, sites, session, guess=True)
    return plan(cluster, observation, ladders_of(cluster, sites))


def compile_for(cluster: Cluster, observation: Observation) -> CompiledCluster:
    """Compile the spec for the hosts that it asks for."""
    return compile_cluster(cluster.spec, observation.desired, cluster.catalog)


def pending_for(cluster: Cluster, compiled: CompiledCluster, observation: Observation) -> Pending:
    """Return the steps whose stamp on the node differs from the compiled spec."""
    return pending_steps(compiled, observation.stamps, cluster.secret_versions(compiled))


def plan(cluster: Cluster, observation: Observation, ladders: Ladders | None = None) -> Plan:
    """Compare; the same spec, observation and ladders give the same plan."""
    compiled = compile_for(cluster, observation)
    pending = pending_for(cluster, compiled, observation)
    cost = usd_per_hour(cluster.spec, cluster.catalog)
    return Plan(
        cluster=cluster.name,
        spec_hash=cluster.spec_hash,
        sites=observation.sites,
        steps=_step_changes(pending, observation),
        unreachable=tuple(
            f"{host}: {reason}" for host, reason in sorted(observation.unreachable.items())
        ),
        usd_per_hour=cost.usd_per_hour_now,
        worst_usd_per_hour=cost.usd_per_hour,
        observed_age_s=round(observation.age_s, 1),
        diagnostics=cluster.warnings,
        ladders=() if ladders is None else ladder_views(ladders),
    )


def _step_changes(pending: Pending, observation: Observation) -> tuple[StepChange, ...]:
    """Fold (host, step) pairs into one line per step, pool and reason, in the order they run."""
    there = {host.name for host in observation.existing.hosts}
    changes: list[StepChange] = []
    for item in pending.steps:
        by_reason: dict[str, list[str]] = defaultdict(list)
        for host, reason in item.hosts.items():
            if host not in observation.unreachable:
                by_reason[reason if host in there else NOT_THERE].append(host)
        acts = item.step.phase in _CHANGES_A_RUNNING_NODE
        for reason, hosts in by_reason.items():
            disruption: Disruption = "in-place" if acts and reason != NOT_THERE else "none"
            changes.append(
                StepChange(
                    step=item.step.key,
                    pool=item.pool,
                    hosts=fold(hosts),
                    count=len(hosts),
                    reason=reason,
                    disruption=disruption,
                )
            )
    return tuple(changes)
