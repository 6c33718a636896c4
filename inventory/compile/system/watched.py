"""Whether a cluster is watched, and where from: what the roles of monitoring have in common."""

from __future__ import annotations

from ....schemas.derived.control_planes import watched_by_roles
from ....schemas.spec.cluster import Monitoring
from ...hosts import Host
from ..node import NodeFacts
from ..steps import Json, Phase, Stage, Step

POD_TEXTFILES = "/var/lib/gcluster/metrics"
"""Folder of hosts that the pod of a chart's node exporter reads; Debian's package has its own."""


def monitoring_of(node: NodeFacts) -> Monitoring | None:
    """Return the spec's monitoring where roles set it up; None: none, or Kubernetes' chart."""
    monitoring = node.spec.monitoring
    if monitoring is None or not monitoring.prometheus:
        return None
    return monitoring if watched_by_roles(node.spec) else None


def monitoring_host(node: NodeFacts) -> Host | None:
    """Return the host that runs Prometheus and Alertmanager, if it is one of this pool's."""
    monitoring = monitoring_of(node)
    if monitoring is None:
        return None
    if monitoring.pool is not None:
        hosts = node.cluster.by_pool.get(monitoring.pool, ())
    else:
        hosts = node.cluster.controllers
    return hosts[0] if hosts and hosts[0].pool == node.name else None


def monitoring_step(
    role: str, phase: Phase, variables: dict[str, Json], secrets: dict[str, str] | None = None
) -> Step:
    """Return a step; jobs don't feel it."""
    return Step(
        stage=Stage.MONITORING,
        role=role,
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )
