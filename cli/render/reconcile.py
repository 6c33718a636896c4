"""Where followed clusters stand, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...lifecycle.gitops.record import ControllerRecord, Followed
from .cells import pad, printable, width
from .surface import Surface, Tone

_TONES: dict[str, Tone] = {
    "synced": "good",
    "down": "faint",
    "paused": "note",
    "waiting": "warning",
    "locked": "warning",
    "orphaned": "warning",
}
_SHORT = 10
"""Digits of a commit that are shown."""


def controllers_text(records: Iterable[ControllerRecord], surface: Surface) -> str:
    """Return every controller with its clusters; says so where there is none."""
    lines = [line for record in records for line in _controller(record, surface)]
    return surface.plain("\n".join(lines) or "nothing is followed on this machine")


def followed_text(followed: Followed, surface: Surface) -> str:
    """Return one cluster."""
    return surface.plain("\n".join(_cluster(followed, surface, width(followed.name))))


def _controller(record: ControllerRecord, surface: Surface) -> Iterator[str]:
    yield surface.paint("strong", f"{printable(record.repo)}   {record.branch}:{record.path}")
    if record.read_at is not None:
        head = f"{record.commit[:_SHORT]} {printable(record.title)}"
        yield f"  {head}   read {record.read_at:%Y-%m-%d %H:%M} UTC"
    for found in record.problem:
        place = f"{printable(found.file)}: " if found.file else ""
        yield surface.paint("error", f"  {place}{printable(found.summary)} [{found.code}]")
    if record.problem:
        yield "  nothing of it was applied"
    columns = max((width(name) for name in record.clusters), default=0)
    for followed in record.clusters.values():
        yield from _cluster(followed, surface, columns)


def _cluster(followed: Followed, surface: Surface, columns: int) -> Iterator[str]:
    phase = surface.paint(_TONES.get(followed.phase, "error"), pad(followed.phase, 8))
    commit = followed.applied[:_SHORT] or "-"
    since = f"since {followed.since:%Y-%m-%d %H:%M} UTC"
    reason = f"   {printable(followed.reason)}" if followed.reason else ""
    yield f"  {pad(followed.name, columns)}  {phase}  {pad(commit, _SHORT)}  {since}{reason}"
    if followed.next_try is not None:
        times = f"failed {followed.failures} times" if followed.failures > 1 else "failed once"
        yield f"    {times}; tried again after {followed.next_try:%Y-%m-%d %H:%M:%S} UTC"
    if followed.ends:
        yield f"    {surface.paint('warning', printable(followed.ends))}"
    for found in followed.diagnostics:
        if found.hint:
            yield f"    {printable(found.summary)} [{found.code}]: {printable(found.hint)}"
