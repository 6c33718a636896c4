"""Elastic nodes in `status`: where each one is, by the burst agent's ledger and the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from ...inventory.hosts import elastic_nodes
from ...schemas.spec import ClusterSpec
from ..operations.burst.agent.ledger import BurstFold
from ..state.event_types import BurstStep
from .conditions import ElasticState, ElasticStatus
from .slurm import SchedulerView

_STATES: Mapping[BurstStep, ElasticState] = {
    "requested": "requested",
    "made": "starting",
    "joined": "joined",
    "leaving": "leaving",
    "refused": "refused",
    "gone": "off",
}
"""Step in the ledger -> state."""


def elastic_status(
    spec: ClusterSpec, ledger: BurstFold, view: SchedulerView | None
) -> tuple[ElasticStatus, ...]:
    """Return every elastic node of the spec, and what is left of those that it dropped.

    Args:
        spec: the cluster.
        ledger: all events of the cluster, folded.
        view: the scheduler's answer; None: it was not queried.
    """
    names = {node: pool for pool, nodes in elastic_nodes(spec).items() for node in nodes}
    names |= {r.node: r.pool for r in ledger.nodes.values() if r.is_live and r.node not in names}
    return tuple(_status(node, pool, ledger, view) for node, pool in names.items())


def _status(node: str, pool: str, ledger: BurstFold, view: SchedulerView | None) -> ElasticStatus:
    record = ledger.nodes.get(node)
    seen = "" if view is None else view.states.get(node, "")
    given = "" if view is None else view.reasons.get(node, "")
    if record is None:
        return ElasticStatus(name=node, pool=pool, state="off", scheduler_state=seen, reason=given)
    requested = datetime.fromtimestamp(record.requested, UTC)
    return ElasticStatus(
        name=node,
        pool=record.pool,
        site=record.site if record.is_live or record.reason else "",
        state=_STATES[record.step],
        scheduler_state=seen,
        reason=record.reason or given,
        requested=f"{requested:%Y-%m-%dT%H:%M:%SZ}" if record.is_live else "",
    )
