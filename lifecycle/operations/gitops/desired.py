"""The desired specs of a commit, all of them valid, in the order in which they are applied."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.fleet.checked import check, gather
from ....schemas.fleet.ordering import FILE, NONE, Fleet, load_fleet
from ....schemas.load import Loaded
from ...cluster.cluster import Cluster, open_cluster
from ...cluster.outcome import Exit, LifecycleError
from ...state import Journal, RunRecord, newest_applied
from .record import read_pause


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, read."""

    clusters: dict[str, Cluster]
    """By name; none where anything is wrong with the commit."""
    fleet: Fleet
    problem: tuple[Diagnostic, ...] = ()
    """What is wrong: then nothing of the commit is applied."""


def read_desired(tree: Path, path: str) -> Desired:
    """Read the specs below `path` of a commit's files.

    A commit is applied as a whole or not at all: one spec that is wrong, that clashes with another
    or that a policy refuses, and no cluster is changed.
    """
    folder = tree / path
    if not folder.is_dir():
        return _wrong((_error("GC855", f"the repository has no folder {path}"),))
    report = check(gather([str(folder)], bytes))
    loaded = [each.loaded for each in report.specs]
    stateless = [_stateless(each) for each in loaded if each.spec is not None]
    found = [*report.found(), *(each for each in stateless if each is not None)]
    names = [each.spec.name for each in loaded if each.spec is not None]
    fleet = NONE
    if (folder / FILE).is_file():
        read = load_fleet((folder / FILE).read_bytes(), file=str(folder / FILE), clusters=names)
        found += read.diagnostics
        fleet = read.fleet or NONE
    errors = tuple(_relative(each, tree) for each in found if each.is_error)
    return _wrong(errors) if errors else _opened(loaded, tree, fleet)


def _opened(loaded: list[Loaded], tree: Path, fleet: Fleet) -> Desired:
    clusters: dict[str, Cluster] = {}
    problem: list[Diagnostic] = []
    for each in loaded:
        try:
            cluster = open_cluster(each.file)
        except LifecycleError as error:  # what this version of gcluster can't do
            problem += [_relative(diagnostic, tree) for diagnostic in error.diagnostics]
        else:
            clusters[cluster.name] = cluster
    return _wrong(tuple(problem)) if problem else Desired(clusters=clusters, fleet=fleet)


def _wrong(problem: tuple[Diagnostic, ...]) -> Desired:
    return Desired(clusters={}, fleet=NONE, problem=problem)


def _stateless(loaded: Loaded) -> Diagnostic | None:
    """Report a spec whose state would be on the controller's machine alone."""
    if loaded.spec is None or loaded.spec.state is not None:
        return None
    return msgspec.structs.replace(
        _error("GC1131", f'the spec of "{loaded.spec.name}" names no state'),
        file=loaded.file,
        span=loaded.document.locate(("name",)) if loaded.document is not None else None,
        hint="state: s3://BUCKET/PREFIX, or another place that all its operators can reach",
    )


def _relative(found: Diagnostic, tree: Path) -> Diagnostic:
    """Name files as the repository does."""
    return msgspec.structs.replace(found, file=found.file.removeprefix(f"{tree}/"))


def _error(code: str, summary: str) -> Diagnostic:
    return Diagnostic(code=code, severity=Severity.ERROR, summary=summary)


Stand: TypeAlias = Literal["as-merged", "differs", "down", "paused"]


class SyncStatus(NamedTuple):
    """What there is to do about a cluster, and why."""

    stand: Stand
    reason: str


def sync_status(cluster: Cluster) -> SyncStatus:
    """Compare a merged spec with the last applied one; contacts no site and no node.

    A cluster that was taken down by hand stays down until another spec is merged, or it is brought
    up by hand: a controller doesn't undo manual operations.
    """
    pause = read_pause(cluster.store)
    run = last_change(cluster)
    if run is None:
        status = SyncStatus("differs", "it was never applied")
    elif run.command == "down" and run.spec_hash == cluster.spec_hash:
        why = f" ({run.why})" if run.why else ""
        return SyncStatus("down", f"taken down by {run.actor} on {run.started:%Y-%m-%d %H:%M}{why}")
    elif _is_applied(cluster, run):
        return SyncStatus("as-merged", "")
    elif run.spec_hash == cluster.spec_hash:
        status = SyncStatus("differs", f"the last up ended {run.outcome or run.state}")
    else:
        status = SyncStatus("differs", "another spec was applied last")
    if pause is not None:
        return SyncStatus("paused", f"by {pause.by}: {pause.reason}")
    return status


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
