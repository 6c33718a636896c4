"""Whether the Slurm that runs can become the one that the spec gives: by a window, never older.

The order itself, slurmdbd before slurmctld before slurmd, is that of every convergence; slurmdbd
and slurmctld keep what a new version would rewrite (roles slurmdbd and slurm).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...schemas.catalog import Catalog
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, SlurmScheduler
from ...schemas.stack.lock import Skew, load_lock, older
from ...schemas.stack.pools import resolved_pools
from ...schemas.stack.rules import behind, window
from ..state import Built


def slurm_upgrade_findings(
    before: ClusterSpec | None, built: Built | None, after: ClusterSpec, catalog: Catalog
) -> tuple[Diagnostic, ...]:
    """Return an error for each change of Slurm that its daemons could not make.

    Args:
        before: the spec that was applied; None: there is nothing yet.
        built: what that was brought up with; its versions count before those of the spec.
        after: the spec to apply.
        catalog: of `after`.
    """
    if before is None or not _both_slurm(before, after):
        return ()
    was, will = resolved_pools(before, catalog), resolved_pools(after, catalog)
    changes: dict[tuple[str, str], list[str]] = {}
    for pool in after.pools.keys() & before.pools.keys():
        ran = None if built is None else built.versions.get(f"{pool}: slurm")
        old, new = ran or was[pool].version("slurm"), will[pool].version("slurm")
        if old and new:
            changes.setdefault((old, new), []).append(pool)
    skew = next(skew for skew in load_lock().skews if skew.component == "slurm")
    return tuple(
        found
        for (old, new), pools in sorted(changes.items())
        for found in _refused(old, new, sorted(pools), skew)
    )


def _both_slurm(before: ClusterSpec, after: ClusterSpec) -> bool:
    return isinstance(before.scheduler, SlurmScheduler) and isinstance(
        after.scheduler, SlurmScheduler
    )


def _refused(old: str, new: str, pools: list[str], skew: Skew) -> Iterator[Diagnostic]:
    named = f"pool{'s' if len(pools) > 1 else ''} {', '.join(pools)}"
    if older(new, old):
        yield _error(
            f"{named}: Slurm would go back from {old} to {new}",
            "what a newer Slurm has written can't be read by an older one",
            f'write slurm: "{old}", or take the cluster down and put a saved queue back',
        )
        return
    distance, allowed = behind(skew, old, new), window(skew, new)
    if distance is not None and distance > allowed:
        step = _furthest(old, skew)
        yield _error(
            f"{named}: Slurm {new} is {distance} releases after {old}, and can follow {allowed}",
            "its daemons would not read the state that is there, and end",
            f'go in steps: write slurm: "{step}", run gcluster up, then go on' if step else "",
        )


def _furthest(old: str, skew: Skew) -> str | None:
    """Return the newest release that can follow a version."""
    fit = (
        release
        for release in reversed(skew.releases)
        if (distance := behind(skew, old, release)) is not None
        and 0 < distance <= window(skew, release)
    )
    return next(fit, None)


def _error(summary: str, detail: str, hint: str) -> Diagnostic:
    return Diagnostic(
        code="GC1192",
        severity=Severity.ERROR,
        summary=summary,
        detail=detail,
        path=("software", "slurm"),
        hint=hint,
    )
