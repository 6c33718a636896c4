"""Nodes that were drained, resumed or restarted, as text."""

from __future__ import annotations

from collections.abc import Iterable

from ...lifecycle.operations.queue_state import RestoreResult, SavedQueue
from ...lifecycle.operations.reboot import Pace, RebootResult
from ...lifecycle.operations.rotate import Rotated
from ...lifecycle.operations.service import Served, ServiceResult
from ...lifecycle.secrets.encryption import RotatedEncryption
from ...schemas.derived.hostlist import fold
from .cells import pad, printable, width
from .quantities import duration


def served_text(result: ServiceResult) -> str:
    """Return one line a node: in service or out, its jobs, and why."""
    size = max((width(node.name) for node in result.nodes), default=0)
    return "\n".join(f"{pad(node.name, size)}  {_served(node)}" for node in result.nodes)


def paces_text(paces: Iterable[Pace]) -> str:
    """Return what a reboot would do, pool by pool."""
    return "\n".join(
        f"{pace.pool}: {fold(pace.nodes)}, {pace.at_once} at a time; "
        + (
            f"{pace.jobs} jobs are put back in line"
            if pace.requeues
            else f"waits up to {duration(pace.wait_s)} for {pace.jobs} jobs"
        )
        for pace in paces
    )


def rebooted_text(result: RebootResult) -> str:
    """Return how a reboot ended."""
    lines = [f"{fold(result.rebooted)} restarted"] if result.rebooted else []
    lines += [f"{n} failed, and stays drained: {printable(s)}" for n, s in result.failed.items()]
    lines += [f"{n} not restarted, in service: {printable(s)}" for n, s in result.held.items()]
    return "\n".join(lines)


def _served(node: Served) -> str:
    facts = ["in service" if node.in_service else "out of service"]
    facts += [] if node.changed else ["as before"]
    facts += [f"{len(node.jobs)} jobs run on"] if node.jobs and not node.in_service else []
    facts += [printable(node.reason)] if node.reason else []
    return ", ".join(facts)


def saved_text(saved: SavedQueue) -> str:
    """Return a saved queue on one line."""
    known = saved.running is not None
    jobs = f"{saved.running} running and {saved.pending} pending jobs" if known else "unknown jobs"
    return f"{saved.id}  {jobs}, {saved.size:,} bytes, Slurm {saved.slurm or 'unknown'}"


def restored_text(result: RestoreResult) -> str:
    """Return what became of a saved queue."""
    if not result.restored:
        return (
            f"kept for the next controller: {saved_text(result.saved)}\n"
            f"gcluster up {result.cluster} makes it"
        )
    if result.running is None:
        return "restored; slurmctld does not tell its jobs yet: gcluster status"
    return f"restored: {result.running} running, {result.pending} pending jobs"


def rotated_encryption_text(result: RotatedEncryption) -> str:
    """Return what was encrypted anew, and by whom."""
    before, after = printable(result.before), printable(result.after)
    same = "a new data key" if before == after else f"it was {before}"
    return f"{result.count} secrets of {result.cluster} are encrypted by {after}; {same}"


def rotated_text(result: Rotated) -> str:
    """Return which machines have the new key, and which have not and why."""
    lines = [f"{fold(result.changed)}: new key"]
    lines += [f"{name}: left with the old key: {printable(w)}" for name, w in result.left.items()]
    lines += [f"gcluster up {result.cluster} gives it to them"] * bool(result.left)
    return "\n".join(lines)
