"""One round of the controller: read the branch, see what differs, and change it in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from ...schemas.diagnostics import Diagnostic, Severity
from ..cluster.cluster import Cluster, open_applied
from ..cluster.outcome import Exit, LifecycleError
from ..state import StateStore
from .act import Acted, bring_up, pause_s
from .desired import Desired, last_change, read_desired, sync_status
from .ends import reap_expired
from .git import Head, Repository
from .record import ControllerRecord, read_record
from .removed import see_removed
from .round_record import ControllerEvent, RoundRecord

DEFAULT_MOST_CHANGED = 5
"""Clusters that one round may change where nobody says how many."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller was told."""

    repo: str
    branch: str
    path: str
    """Folder of the specs in the repository."""
    most_changed: int = DEFAULT_MOST_CHANGED
    allow: frozenset[tuple[str, str]] = frozenset()
    """(cluster, thing that a guard holds back): let happen in this round."""


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
    book = RoundRecord(before, world.store, world.now, world.emit)
    try:
        head = world.repository.fetch()
        tree = world.repository.tree(head.commit)
    except LifecycleError as error:
        pause = timedelta(seconds=pause_s(before.failures + 1, world.chance()))
        book.unread(error.diagnostics, world.now() + pause)
        return Exit.FAILED
    desired = read_desired(tree, settings.path)
    book.read(head, tree, desired.problem)
    if desired.problem:
        return Exit.SPEC
    reap_expired(desired.clusters, head, book, [*book.known])
    differing = _compare(desired, head, book)
    removed = see_removed(desired.fleet, desired.clusters, book)
    most = settings.most_changed
    if len(differing) + len(removed.named) > most:
        over = _over(sorted([*differing, *removed.named]), most)
        for name in differing:
            book.note(desired.clusters[name], head, Acted("refused", over.summary, (over,)))
        book.keep()
        return Exit.REFUSED
    _change(desired, differing, head, book, settings=settings, world=world)
    removed.take_down()
    reap_expired(desired.clusters, head, book, differing)
    book.keep()
    return book.worst()


def _compare(desired: Desired, head: Head, book: RoundRecord) -> list[str]:
    """Note the clusters that there is nothing to do about; return the others."""
    differing = []
    for name, cluster in desired.clusters.items():
        try:
            found = sync_status(cluster)
        except LifecycleError as error:
            said = error.diagnostics[0].summary
            book.note(cluster, head, Acted("failed", said, error.diagnostics))
            continue
        if (moved := _moved(cluster, book)) is not None:
            book.note(cluster, head, Acted("refused", moved.summary, (moved,)))
        elif found.stand == "differs":
            differing.append(name)
        elif found.stand == "as-merged":
            book.note(cluster, head, Acted("synced", ""))
        else:
            book.note(cluster, head, Acted(found.stand, found.reason))
    return differing


def _moved(cluster: Cluster, book: RoundRecord) -> Diagnostic | None:
    """Find that a spec names another state while the cluster of the first one runs on."""
    before = book.known.get(cluster.name)
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
    book: RoundRecord,
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
                book.note(cluster, head, Acted("waiting", reason))
            elif not (book.is_due(cluster) or _allowed(name, settings)):
                book.still_waits(cluster, head)
            else:
                _apply(cluster, head, book, settings, world)
        held_up_by += [name for name in step if not book.is_well(name)]


def _allowed(cluster: str, settings: Settings) -> frozenset[str]:
    """Return what somebody lets happen to a cluster; it is tried then, and waits for no pause."""
    return frozenset(thing for name, thing in settings.allow if name == cluster)


def _apply(
    cluster: Cluster, head: Head, book: RoundRecord, settings: Settings, world: World
) -> None:
    cluster.why = f"commit {head.commit}"
    acted = bring_up(cluster, _allowed(cluster.name, settings), book.reporter(cluster.name))
    if acted.phase == "synced":
        book.note(cluster, head, acted, applied=True)
    elif acted.phase == "locked":  # whoever has it is at work: no failure, and no growing pause
        book.note(cluster, head, acted)
    else:
        book.failed(cluster, head, acted, world.chance())


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
