"""Lets people have a cluster left as it is, whatever is merged, until they say otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..outcome import Exit, failure
from ..state.process import who
from ..state.store import utc_now
from .record import PAUSED_KEY, Paused, read_pause

if TYPE_CHECKING:
    from ..cluster import Cluster


def pause(cluster: Cluster, reason: str) -> Paused:
    """Write down that somebody wants the cluster left as it is.

    Raises:
        LifecycleError: no reason is given (exit code USAGE).
    """
    if not reason.strip():
        raise failure("GC941", "why? --reason is empty", exit_code=Exit.USAGE)
    paused = Paused(by=who(), since=utc_now(), reason=reason)
    cluster.store.put(PAUSED_KEY, msgspec.json.encode(paused))
    return paused


def go_on(cluster: Cluster) -> Paused | None:
    """Let the cluster be changed again; return who had it paused, None: nobody."""
    paused = read_pause(cluster.store)
    if paused is not None:
        cluster.store.delete(PAUSED_KEY)
    return paused
