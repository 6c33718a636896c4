"""Whether the version that a spec asks for may follow the one that runs, told before any change.

Each host holds itself to the same (module kubernetes_version_skew): it knows what it really runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...schemas.diagnostics import Diagnostic, Severity
from ..observe import Observation
from ..planning.changes import UpgradeLine
from .settle import JOINED

_WHAT = ": kubernetes"
"""How a line of a plan's upgrades ends that is about a pool's Kubernetes."""


def skew_findings(
    upgrades: Iterable[UpgradeLine], observation: Observation
) -> tuple[Diagnostic, ...]:
    """Return an error for each step that would skip a minor or go back (GC1009).

    Args:
        upgrades: versions that differ from those that the cluster was last brought up with.
        observation: what is there; where nobody ever joined there is nothing to follow.
    """
    if not any(JOINED in carried for carried in observation.stamps.values()):
        return ()
    pools: dict[tuple[str, str], list[str]] = {}
    for line in upgrades:
        if line.what.endswith(_WHAT):
            pool = line.what.removesuffix(_WHAT)
            pools.setdefault((line.before, line.after), []).append(pool)
    found = ((names, wrong(*step)) for step, names in pools.items())
    return tuple(
        Diagnostic(
            code="GC1009",
            severity=Severity.ERROR,
            summary=f"{why[0]} ({'pools' if len(names) > 1 else 'pool'} {', '.join(names)})",
            path=("software", "kubernetes"),
            hint=why[1],
        )
        for names, why in found
        if why is not None
    )


def wrong(before: str, after: str) -> tuple[str, str] | None:
    """Return what is wrong with a step between versions, and what to do; None: it may be done.

    Args:
        before: what runs: "1.34.4", or "1.34" where packages have the newest of a minor.
        after: what is asked for.
    """
    runs, wanted = _numbers(before), _numbers(after)
    both = min(len(runs), len(wanted))
    if runs[:1] != wanted[:1] or wanted[:both] < runs[:both]:
        return (
            f"Kubernetes {before} runs, and {after} is older",
            f'write software.kubernetes: "{before}" or a newer one: Kubernetes doesn\'t go back',
        )
    if both > 1 and wanted[1] > runs[1] + 1:
        between = f"{runs[0]}.{runs[1] + 1}"
        return (
            f"Kubernetes {before} runs, and {after} skips a minor",
            f"go to {between} first, then on from there",
        )
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, two or three of them."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
