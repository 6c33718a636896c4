"""A cluster's status: conditions with reasons and since when, nodes, queue, last certificate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ...lifecycle.status.conditions import ClusterStatus, Condition, NodeStatus
from .cells import pad, printable, width
from .down import kept_lines
from .operating import causes_lines, queue_lines, quota_lines
from .quantities import bandwidth, duration
from .repair import repair_lines
from .surface import Surface, Tone

_MARKS: dict[str, tuple[str, Tone]] = {
    "true": ("✔", "good"),
    "false": ("✘", "error"),
    "unknown": ("?", "warning"),
}
_MANY = 24
"""Above this many nodes only those that need somebody are listed, and the rest counted."""


def status_text(status: ClusterStatus, surface: Surface, *, now: datetime) -> str:
    """Return the status as text.

    Args:
        status: what was seen.
        surface: what it is written on.
        now: the moment that "since" is counted to; aware.
    """
    well = (
        surface.paint("good", "healthy") if status.healthy else surface.paint("error", "not well")
    )
    lines = [f"{surface.paint('strong', status.cluster)}   {well}"]
    lines += [_condition(condition, surface, now) for condition in status.conditions]
    if status.nodes:
        lines += ["", *_nodes(status.nodes, surface, now)]
    if status.causes:
        lines += ["", *causes_lines(status.causes, surface)]
    if status.queue is not None:
        lines += ["", *queue_lines(status.queue)]
    lines += quota_lines(status.quotas)
    if status.repairs:
        lines += ["", *repair_lines(status.cluster, status.repairs, surface, now=now)]
    if status.certificate is not None:
        lines += [f"certificate  {_certificate(status.certificate, now)}"]
    if status.kept:
        lines += ["", *kept_lines(status.cluster, status.kept)]
    return surface.plain("\n".join(lines))


def age(stamp: str, now: datetime) -> str:
    """Return how long ago an RFC 3339 stamp was, "" when it can't be read."""
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return ""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return duration(max(0.0, (now - then).total_seconds()))


def _condition(condition: Condition, surface: Surface, now: datetime) -> str:
    mark, tone = _MARKS[condition.status]
    since = age(condition.since, now) if condition.since else ""
    told = surface.paint("faint", f"for {since}") if since else ""
    reason = "   ".join(part for part in (printable(condition.reason), told) if part)
    return f"  {surface.paint(tone, mark)} {pad(condition.name, 16)} {reason}".rstrip()


def _nodes(nodes: tuple[NodeStatus, ...], surface: Surface, now: datetime) -> Iterator[str]:
    listed = nodes if len(nodes) <= _MANY else tuple(n for n in nodes if not _fit(n))
    rows = [_row(node, now) for node in listed]
    titles = ("NODE", "ROLE", "POOL", "ADDRESS", "STATE", "NOTE")
    columns = list(zip(titles, *rows, strict=True))
    widths = [max(map(width, column)) for column in columns]
    if rows:
        yield surface.paint("faint", _line(titles, widths))
    for node, row in zip(listed, rows, strict=True):
        line = _line(row, widths)
        yield line if _fit(node) else surface.paint("error", line)
    if len(listed) < len(nodes):
        yield f"  {len(nodes) - len(listed):,} more nodes, all fit"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    return "  " + "  ".join(map(pad, cells, widths)).rstrip()


def _fit(node: NodeStatus) -> bool:
    return node.reachable and not node.reason and not node.steps_pending


def _row(node: NodeStatus, now: datetime) -> tuple[str, ...]:
    pending = f"{node.steps_pending} steps to run" if node.steps_pending else ""
    unreached = "" if node.reachable or node.reason else "no answer"
    since = f"for {age(node.out_since, now)}" if node.out_since else ""
    note = ", ".join(part for part in (printable(node.reason), since, unreached, pending) if part)
    state = node.scheduler_state or ("up" if node.reachable else "-")
    return node.name, node.role, node.pool, node.address or "-", state, note


def _certificate(certificate: dict[str, Any], now: datetime) -> str:
    verdict = certificate.get("verdict")
    verdict = verdict if isinstance(verdict, dict) else {}
    busbw, taken = verdict.get("busbw"), age(str(certificate.get("time", "")), now)
    facts = [str(verdict.get("verdict", "unknown"))]
    facts += [f"{bandwidth(busbw)} busbw"] if isinstance(busbw, int | float) else []
    facts += [f"{taken} ago"] if taken else []
    return printable(", ".join(facts))
