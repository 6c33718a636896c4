"""Where a cluster stands against its merged spec, told from its state alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from ..outcome import Exit
from ..state import Journal, RunRecord, newest_applied
from .record import read_pause

if TYPE_CHECKING:
    from ..cluster import Cluster

Stand: TypeAlias = Literal["as-merged", "differs", "down", "paused"]


class Standing(NamedTuple):
    """What there is to do about a cluster, and why."""

    stand: Stand
    reason: str


def standing(cluster: Cluster) -> Standing:
    """Compare a merged spec with what was applied last; asks no site and no node.

    A cluster that somebody took down stays down until another spec is merged, or somebody brings
    it up: a controller undoes nothing that a person did on purpose.
    """
    pause = read_pause(cluster.store)
    run = last_change(cluster)
    if run is None:
        said = Standing("differs", "it was never applied")
    elif run.command == "down" and run.spec_hash == cluster.spec_hash:
        why = f" ({run.why})" if run.why else ""
        return Standing("down", f"taken down by {run.actor} on {run.started:%Y-%m-%d %H:%M}{why}")
    elif _is_applied(cluster, run):
        return Standing("as-merged", "")
    elif run.spec_hash == cluster.spec_hash:
        said = Standing("differs", f"the last up ended {run.outcome or run.state}")
    else:
        said = Standing("differs", "another spec was applied last")
    if pause is not None:
        return Standing("paused", f"by {pause.by}: {pause.reason}")
    return said


def last_change(cluster: Cluster) -> RunRecord | None:
    """Return the last run that made or removed something."""
    runs = Journal(cluster.events).runs()
    return next((run for run in reversed(runs) if run.command in {"up", "down"}), None)


def _is_applied(cluster: Cluster, run: RunRecord) -> bool:
    applied = newest_applied(cluster.store)
    return (
        run.command == "up"
        and run.exit_code == Exit.OK
        and run.spec_hash == cluster.spec_hash
        and applied is not None
        and applied.catalogs == dict(cluster.catalogs)
    )
