"""A controller's record of the clusters that it follows: kept in its state, shown by status."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from ....schemas.diagnostics import Diagnostic
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, failure
from ...state import StateStore
from ...state.process import user_at_host
from ...state.store import utc_now
from ...status.conditions import Condition

KEY = "reconcile.json"
"""Key in the controller's state; under the same key each cluster's state has its own part."""
PAUSED_KEY = "reconcile-paused.json"
"""Key in a cluster's state: the cluster is paused."""

Phase: TypeAlias = Literal[
    "synced", "down", "paused", "waiting", "orphaned", "locked", "refused", "invalid", "failed"
]
"""synced: as merged. down: it was taken down, and nothing new was merged since. paused: excluded by
hand. waiting: for clusters before it, or for its pause after a failure. orphaned: its spec is gone,
and it still runs. locked: another run works on it. refused: by a guard, a limit or a policy.
invalid: what was merged can't be read. failed: it was begun and didn't end well."""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, from its controller's view."""

    name: str
    spec: str
    """Path in the repository; "" where it has none any more."""
    state_url: str
    phase: Phase
    reason: str = ""
    since: datetime
    """Since when it is in this phase for this reason."""
    commit: str = ""
    """The newest commit that was processed."""
    applied: str = ""
    """The commit that it is as; "" where none was applied by the controller."""
    ends: str = ""
    """When it expires, or why that can't be announced; "": not soon."""
    diagnostics: tuple[Diagnostic, ...] = ()
    failures: int = 0
    """In a row, of this very spec."""
    tried: str = ""
    """Hash of the spec that `failures` counts for."""
    next_try: datetime | None = None
    """Not tried again before; None: at the next round."""

    @property
    def condition(self) -> Condition:
        """The same as a condition of the cluster."""
        well = self.phase in {"synced", "down"}
        return Condition(
            name="Reconciled",
            status="true" if well else "unknown" if self.phase == "waiting" else "false",
            reason=f"{self.phase}: {self.reason}" if self.reason else self.phase,
            since=f"{self.since:%Y-%m-%dT%H:%M:%SZ}",
        )


class ControllerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One controller: the branch it follows, how reading it went, and its clusters."""

    repo: str
    branch: str
    path: str
    commit: str = ""
    """The newest that was read."""
    title: str = ""
    read_at: datetime | None = None
    """When the repository last answered."""
    problem: tuple[Diagnostic, ...] = ()
    """Why the repository, or all that was merged, can't be used; empty: it can."""
    failures: int = 0
    """How often in a row the repository couldn't be read."""
    next_try: datetime | None = None
    clusters: dict[str, Followed] = {}


class Paused(msgspec.Struct, frozen=True, kw_only=True):
    """A pause: the cluster is left unchanged."""

    by: str
    since: datetime
    reason: str


def read_record(store: StateStore) -> ControllerRecord | None:
    """Return what a controller wrote last; None: it never did."""
    return store.read(KEY, ControllerRecord)


def write_record(store: StateStore, record: ControllerRecord) -> None:
    """Write it, as a whole."""
    store.put(KEY, msgspec.json.encode(record))


def write_followed(store: StateStore, followed: Followed) -> None:
    """Write a cluster's part to its own state, where that exists and differs."""
    if store.identity() is not None and store.read(KEY, Followed) != followed:
        store.put(KEY, msgspec.json.encode(followed))


def read_followed(store: StateStore) -> Followed | None:
    """Return the controller's record of a cluster; None: it is not followed."""
    return store.read(KEY, Followed)


def read_pause(store: StateStore) -> Paused | None:
    """Return the cluster's pause; None: it is not paused."""
    return store.read(PAUSED_KEY, Paused)


def pause(cluster: Cluster, reason: str) -> Paused:
    """Record a pause of the cluster.

    Raises:
        LifecycleError: no reason is given (exit code USAGE).
    """
    if not reason.strip():
        raise failure("GC941", "why? --reason is empty", exit_code=Exit.USAGE)
    paused = Paused(by=user_at_host(), since=utc_now(), reason=reason)
    cluster.store.put(PAUSED_KEY, msgspec.json.encode(paused))
    return paused


def go_on(cluster: Cluster) -> Paused | None:
    """Resume the cluster; return who had paused it, None: it was not paused."""
    paused = read_pause(cluster.store)
    if paused is not None:
        cluster.store.delete(PAUSED_KEY)
    return paused
