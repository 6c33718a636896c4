"""One round of the controller: read the branch, see what differs, and change it in order.

Clusters that expire and those whose spec is gone are seen to first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from ....schemas.cost.pools import usd_per_hour
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.fleet.ordering import Fleet
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster, open_applied
from ...cluster.outcome import Exit, LifecycleError
from ...down.expiry.reaper import reap_once
from ...down.expiry.running_work import query_jobs
from ...state import StateStore
from .act import Acted, bring_up, pause_s, take_down
from .desired import Desired, last_change, read_desired, sync_status
from .git import Head, Repository
from .record import ControllerRecord, read_record
from .round_record import ControllerEvent, RoundRecord

DEFAULT_MOST_CHANGED = 5
"""Default number of clusters that one round may change."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a controller was started with."""

    repo: str
    branch: str
    path: str
    """Folder of the specs in the repository."""
    most_changed: int = DEFAULT_MOST_CHANGED
    allow: frozenset[tuple[str, str]] = frozenset()
    """(cluster, what a guard blocks): allowed in this round."""


class World(NamedTuple):
    """What a round meets outside; tests bring their own."""

    repository: Repository
    store: StateStore
    """The controller's own state."""
    now: Callable[[], datetime]
    chance: Callable[[], float]
    """Even from 0 to 1: for the pauses' jitter."""
    emit: Callable[[ControllerEvent], None]


def have_round(settings: Settings, world: World) -> Exit:
    """Read the branch and bring its clusters to it; return the worst of what came of them."""
    before = read_record(world.store) or ControllerRecord(
        repo=settings.repo, branch=settings.branch, path=settings.path
    )
    if before.next_try is not None and world.now() < before.next_try:
        return Exit.FAILED
    record = RoundRecord(before, world.store, world.now, world.emit)
    try:
        head = world.repository.fetch()
        tree = world.repository.tree(head.commit)
    except LifecycleError as error:
        pause = timedelta(seconds=pause_s(before.failures + 1, world.chance()))
        record.unread(error.diagnostics, world.now() + pause)
        return Exit.FAILED
    desired = read_desired(tree, settings.path)
    record.read(head, tree, desired.problem)
    if desired.problem:
        return Exit.SPEC
    reap_expired(desired.clusters, head, record, [*record.known])
    differing = _compare(desired, head, record)
    removed = see_removed(desired.fleet, desired.clusters, record)
    most = settings.most_changed
    if len(differing) + len(removed.named) > most:
        over = _over(sorted([*differing, *removed.named]), most)
        for name in differing:
            record.note(desired.clusters[name], head, Acted("refused", over.summary, (over,)))
        record.keep()
        return Exit.REFUSED
    _change(desired, differing, head, record, settings=settings, world=world)
    removed.take_down()
    reap_expired(desired.clusters, head, record, differing)
    record.keep()
    return record.worst()


def _compare(desired: Desired, head: Head, record: RoundRecord) -> list[str]:
    """Note the clusters that there is nothing to do about; return the others."""
    differing = []
    for name, cluster in desired.clusters.items():
        try:
            found = sync_status(cluster)
        except LifecycleError as error:
            summary = error.diagnostics[0].summary
            record.note(cluster, head, Acted("failed", summary, error.diagnostics))
            continue
        if (moved := _moved(cluster, record)) is not None:
            record.note(cluster, head, Acted("refused", moved.summary, (moved,)))
        elif found.stand == "differs":
            differing.append(name)
        elif found.stand == "as-merged":
            record.note(cluster, head, Acted("synced", ""))
        else:
            record.note(cluster, head, Acted(found.stand, found.reason))
    return differing


def _moved(cluster: Cluster, record: RoundRecord) -> Diagnostic | None:
    """Find that a spec names another state while the cluster of the first one runs on."""
    before = record.known.get(cluster.name)
    if before is None or before.state_url == cluster.state_url:
        return None
    last = last_change(open_applied(before.state_url, cluster.spec_path))
    if last is None or last.command == "down":
        return None
    return Diagnostic(
        code="GC1134",
        severity=Severity.ERROR,
        summary=f"its spec names another state, and the cluster of {before.state_url} runs on",
        hint="give the old state back, or take that cluster down first",
    )


def _change(
    desired: Desired,
    differing: list[str],
    head: Head,
    record: RoundRecord,
    *,
    settings: Settings,
    world: World,
) -> None:
    """Apply what differs, step by step: a step waits until the one before is as merged."""
    held_up_by: list[str] = []
    for step in desired.fleet.steps(desired.clusters):
        for name in step:
            if name not in differing:
                continue
            cluster = desired.clusters[name]
            if held_up_by:
                reason = f"{', '.join(held_up_by)} comes first, and is not as merged"
                record.note(cluster, head, Acted("waiting", reason))
            elif not (record.is_due(cluster) or _allowed(name, settings)):
                record.keep_failed(cluster, head)
            else:
                _apply(cluster, head, record, settings, world)
        held_up_by += [name for name in step if not record.is_well(name)]


def _allowed(cluster: str, settings: Settings) -> frozenset[str]:
    """Return what was allowed for a cluster; it is tried then without a pause."""
    return frozenset(thing for name, thing in settings.allow if name == cluster)


def _apply(
    cluster: Cluster, head: Head, record: RoundRecord, settings: Settings, world: World
) -> None:
    cluster.why = f"commit {head.commit}"
    acted = bring_up(cluster, _allowed(cluster.name, settings), record.reporter(cluster.name))
    if acted.phase == "synced":
        record.note(cluster, head, acted, applied=True)
    elif acted.phase == "locked":  # its holder is working: no failure, and no growing pause
        record.note(cluster, head, acted)
    else:
        record.failed(cluster, head, acted, world.chance())


def _over(names: Iterable[str], most: int) -> Diagnostic:
    listed = list(names)
    return Diagnostic(
        code="GC1132",
        severity=Severity.ERROR,
        summary=f"{len(listed)} clusters differ from the repository, and {most} may be changed "
        f"at once: {', '.join(listed[:8])}{' ...' if len(listed) > 8 else ''}",  # noqa: PLR2004  # a line
        detail="nothing was changed",
        hint=f"if that is meant: gcluster reconcile --once --max-clusters-changed {len(listed)}",
    )


def reap_expired(
    merged: Mapping[str, Cluster], head: Head, record: RoundRecord, names: Iterable[str]
) -> None:
    """Announce, withdraw and remove what is due; an error is reported for its cluster alone.

    Before anything is applied: a cluster whose end was postponed must be free for tests.
    """
    for name in names:
        followed = record.known.get(name)
        if followed is None or followed.phase in {"down", "locked", "paused"}:
            continue
        try:
            cluster = merged.get(name) or open_applied(followed.state_url, Path(f"{name}.yaml"))
            result = reap_once(cluster, record.reporter(name), now=record.now())
        except (LifecycleError, ProviderError) as error:
            record.end(name, error.diagnostics[0].summary if error.diagnostics else str(error))
            continue
        record.end(name, result.words if result.state in {"announced", "kept", "leftovers"} else "")
        if result.state == "removed" and name in merged:
            record.note(merged[name], head, Acted("down", result.why))
        elif result.state == "removed":
            record.unfollow(name, result.words)


class Removed(NamedTuple):
    """Clusters that fleet.yaml marks for removal."""

    named: dict[str, Cluster]
    record: RoundRecord

    def take_down(self) -> None:
        """Take each down that runs no jobs; data is kept."""
        for name, cluster in self.named.items():
            busy = query_jobs(cluster).why_not
            if busy:
                self.record.spec_removed(name, Acted("refused", f"not removed: {busy}"))
                continue
            cluster.why = f"commit {self.record.record.commit}"
            acted = take_down(cluster, self.record.reporter(name))
            if acted.phase == "down":
                self.record.unfollow(name, acted.reason)
            else:
                self.record.spec_removed(name, acted)


def see_removed(fleet: Fleet, wanted: Collection[str], record: RoundRecord) -> Removed:
    """Process every cluster that was followed and no longer has a spec."""
    named: dict[str, Cluster] = {}
    for name in [name for name in record.known if name not in wanted]:
        try:
            cluster = open_applied(record.known[name].state_url, Path(f"{name}.yaml"))
            last = last_change(cluster)
        except LifecycleError as error:
            if error.diagnostics[0].code == "GC906":  # nothing was ever made
                record.unfollow(name, "its spec is gone, and it was never made")
            else:
                summary = error.diagnostics[0].summary
                record.spec_removed(name, Acted("failed", summary, error.diagnostics))
            continue
        if last is not None and last.command == "down" and last.exit_code == 0:
            record.unfollow(name, f"its spec is gone, and {last.actor} took it down")
        elif name in fleet.remove:
            named[name] = cluster
        else:
            orphan = _orphan(cluster)
            record.spec_removed(name, Acted("orphaned", orphan.summary, (orphan,)))
    return Removed(named, record)


def _orphan(cluster: Cluster) -> Diagnostic:
    price = usd_per_hour(cluster.spec, cluster.catalog).usd_per_hour_now
    costs = "a price that is unknown" if price is None else f"${price:,.2f}/h"
    return Diagnostic(
        code="GC1134",
        severity=Severity.WARNING,
        summary=f"its spec is gone from the repository, and it runs on, at {costs}",
        hint=f"to remove it: name {cluster.name} under remove: in fleet.yaml, "
        f"or gcluster down {cluster.name}",
    )
