"""The repair queue: which nodes enter and leave it when `up` and `down` end, and the attempts.

A pool with a `quorum` may go live without some of its nodes: those wait in the queue. They are
repaired by `repair`, and by every `up` that has something to do. A node that was given up is set
aside: no `up` changes it and its machine is removed, until `repair` is called with its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ....inventory.hosts import Host
from ....schemas.derived.hostlist import fold
from ....schemas.spec import ClusterSpec
from ...state import EventLog, RepairStepped
from ...state.event_types import RepairAction, RepairStep
from ...state.repair_queue import Repair, repairs


def queue(events: EventLog) -> tuple[Repair, ...]:
    """Return the repair queue, oldest first."""
    return repairs(events.read())


def set_aside(spec: ClusterSpec, events: EventLog) -> dict[str, Repair]:
    """Return node -> entry of those that were given up and that a quorum does without."""
    if not any(pool.quorum for pool in spec.pools.values()):
        return {}
    return {
        entry.node: entry
        for entry in queue(events)
        if entry.state == "given-up" and _has_quorum(spec, entry.pool)
    }


def save_queue(
    spec: ClusterSpec,
    events: EventLog,
    *,
    desired: Iterable[Host],
    fit: Collection[str],
    failed: Mapping[str, str],
    below: Collection[str],
) -> None:
    """Record which nodes entered and left the queue.

    Args:
        spec: which pools have a quorum.
        events: the cluster's log.
        desired: all nodes of the spec.
        fit: those in service.
        failed: node -> why it is not in service.
        below: pools that did not reach their quorum; what failed there stops `up` and is no repair.
    """
    entries = {entry.node: entry for entry in queue(events)}
    wanted = {host.name: host for host in desired}
    steps: dict[tuple[str, str, RepairStep, str], list[str]] = {}
    for name, entry in entries.items():
        if name not in wanted or not _has_quorum(spec, entry.pool):
            steps.setdefault((entry.site, entry.pool, "dropped", ""), []).append(name)
        elif name in fit:
            steps.setdefault((entry.site, entry.pool, "admitted", ""), []).append(name)
    for name, reason in failed.items():
        host, known = wanted.get(name), entries.get(name)
        if host is None or host.pool in below or not _has_quorum(spec, host.pool):
            continue
        if known is None or (known.state == "waiting" and known.reason != reason):
            steps.setdefault((host.site, host.pool, "queued", reason), []).append(name)
    for (site, pool, step, reason), names in steps.items():
        emit_step(events, step, names, site=site, pool=pool, reason=reason)


def forget(events: EventLog) -> None:
    """Empty the queue: the cluster has ended."""
    for entry in queue(events):
        emit_step(events, "dropped", [entry.node], site=entry.site, pool=entry.pool)


def emit_step(
    events: EventLog,
    step: RepairStep,
    nodes: Collection[str],
    *,
    site: str,
    pool: str,
    reason: str = "",
    action: RepairAction | None = None,
) -> None:
    """Write one step of some nodes of a pool."""
    events.append(
        RepairStepped(
            site=site, pool=pool, step=step, nodes=fold(sorted(nodes)), reason=reason, action=action
        )
    )


def _has_quorum(spec: ClusterSpec, pool: str) -> bool:
    found = spec.pools.get(pool)
    return found is not None and found.quorum is not None


ORDER: tuple[RepairAction, ...] = ("retry", "replace")
"""A node is booted and converged again as it is, then recreated; then it is given up."""


def next_action(entry: Repair, *, replaceable: bool) -> RepairAction | None:
    """Return what to try next; None: everything was tried.

    What a killed run had begun has no result and is tried again.
    """
    return next(
        (a for a in ORDER if a not in entry.tried and (a != "replace" or replaceable)), None
    )


def failure_reason(entry: Repair, *, replaceable: bool) -> str:
    """Return the reason with which a node is given up: the attempts, and the last error."""
    words = {"retry": "booted and converged again", "replace": "recreated"}
    tried = " and ".join(words[action] for action in entry.tried)
    alone = "" if replaceable else ", and its site can't make it again"
    return f"{tried}{alone}: {entry.reason}"
