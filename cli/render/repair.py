"""The repair queue, what will be tried on it, and how that ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ...lifecycle.repair.attempt import Intended, RepairResult
from ...lifecycle.state.repair_queue import Repair
from ...schemas.derived.hostlist import fold
from .cells import pad, printable, width
from .diagnostics import diagnostics_text
from .quantities import duration, plural
from .surface import Surface

_LISTED = 24
"""Nodes of the queue that are listed; the rest is counted."""
_TRIED = {"retry": "booted and converged again", "replace": "made anew"}


def repair_lines(
    cluster: str, queue: tuple[Repair, ...], surface: Surface, *, now: datetime | None = None
) -> list[str]:
    """Return the queue under its heading; none where it is empty.

    Args:
        cluster: its name, for the command that goes on.
        queue: oldest first.
        surface: what it is written on.
        now: the moment that waiting is counted to; None: no times, so that a plan stays the same.
    """
    if not queue:
        return []
    waiting = sum(1 for entry in queue if entry.state == "waiting")
    parts = [f"{waiting} waiting"] if waiting else []
    parts += [f"{len(queue) - waiting} given up"] if len(queue) > waiting else []
    lines = [surface.paint("strong", f"repair queue   {', '.join(parts)}")]
    names = max(width(entry.node) for entry in queue[:_LISTED])
    for entry in queue[:_LISTED]:
        mark = surface.paint("error", "x") if entry.state == "given-up" else "·"
        since = ""
        if now is not None:
            waited = duration(max(0.0, (now - entry.since).total_seconds()))
            since = surface.paint("faint", f"   for {waited}")
        lines.append(f"  {mark} {pad(entry.node, names)}  {printable(entry.reason)}{since}")
    if len(queue) > _LISTED:
        lines.append(f"  and {len(queue) - _LISTED:,} more")
    words = "" if waiting else " NODE"
    return [*lines, f"  work on them with: gcluster repair {cluster}{words}"]


def intended_text(intended: tuple[Intended, ...]) -> str:
    """Return what will be tried, node by node."""
    lines = []
    for item in intended:
        tries = ", then ".join(_TRIED[action] for action in item.actions) or "given up"
        lines.append(f"  {item.entry.node}: {printable(item.entry.reason)}")
        lines.append(f"      {tries}")
    return "\n".join(lines)


def repaired_text(result: RepairResult, surface: Surface) -> str:
    """Return how it ended: who serves, who was given up and why, what still waits."""
    if not (result.admitted or result.given_up or result.held):
        nothing = f"{result.cluster}: the repair queue has nothing that waits"
        return surface.plain("\n".join([nothing, *_left(result, surface)]))
    lines = []
    if result.diagnostics:
        lines.append(diagnostics_text(result.diagnostics, surface))
    if result.admitted:
        many = plural(len(result.admitted), "node")
        lines.append(f"{surface.paint('good', '✔')} {many} in service: {fold(result.admitted)}")
    lines += _named(surface.paint("error", "x"), "given up", result.given_up.items())
    lines += _named(surface.paint("warning", "·"), "left alone", result.held.items())
    lines += _left(result, surface)
    if result.admitted:
        lines.append(f"prove them with: gcluster smoke {result.cluster}")
    return surface.plain("\n".join(lines))


def _named(mark: str, what: str, nodes: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{mark} {node} {what}: {printable(why)}" for node, why in nodes]


def _left(result: RepairResult, surface: Surface) -> list[str]:
    told = {*result.given_up, *result.held}
    rest = tuple(entry for entry in result.queue if entry.node not in told)
    return repair_lines(result.cluster, rest, surface)
