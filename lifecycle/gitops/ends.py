"""Looks after the ends of the clusters that a controller follows, specs gone or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...stacks.provider import ProviderError
from ..cluster.cluster import Cluster, open_applied
from ..cluster.outcome import LifecycleError
from ..down.expiry.look_after import reap_once
from .act import Acted
from .git import Head
from .round_record import RoundRecord


def reap_expired(
    merged: Mapping[str, Cluster], head: Head, record: RoundRecord, names: Iterable[str]
) -> None:
    """Announce, withdraw and remove what is due; what goes wrong with one is said of that one.

    Before anything is applied: a cluster that was given more time must be free to be tested.
    """
    for name in names:
        followed = record.known.get(name)
        if followed is None or followed.phase in {"down", "locked", "paused"}:
            continue
        try:
            cluster = merged.get(name) or open_applied(followed.state_url, Path(f"{name}.yaml"))
            looked = reap_once(cluster, record.reporter(name), now=record.now())
        except (LifecycleError, ProviderError) as error:
            record.end(name, error.diagnostics[0].summary if error.diagnostics else str(error))
            continue
        record.end(name, looked.words if looked.state in {"announced", "kept", "leftovers"} else "")
        if looked.state == "removed" and name in merged:
            record.note(merged[name], head, Acted("down", looked.why))
        elif looked.state == "removed":
            record.let_go(name, looked.words)
