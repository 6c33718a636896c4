"""Brings one cluster to its merged spec, or takes it down; whatever happens becomes a phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....schemas.diagnostics import Diagnostic, Severity
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, LifecycleError
from ...cluster.progress import Reporter
from ...down.down import down
from ...up.up import up
from .record import Phase

_PHASES: dict[Exit, Phase] = {
    Exit.OK: "synced",
    Exit.SPEC: "invalid",
    Exit.REFUSED: "refused",
    Exit.LOCKED: "locked",
    Exit.PENDING: "waiting",
}


class Acted(NamedTuple):
    """How it ended."""

    phase: Phase
    reason: str
    diagnostics: tuple[Diagnostic, ...] = ()


def bring_up(cluster: Cluster, allow: frozenset[str], report: Reporter) -> Acted:
    """Apply a merged spec without confirmation; what a guard blocks is not done."""

    def act() -> Acted:
        result = up(cluster, report, confirm=lambda _: True, allow=allow)
        code = result.exit_code
        if code is Exit.OK:
            return Acted("synced", "", result.diagnostics)
        message = "; ".join(f"{host}: {why}" for host, why in list(result.failed_hosts.items())[:3])
        if code is Exit.PENDING:
            return Acted("waiting", message or "nodes in use were left as they are")
        reason = message or "the AllReduce did not pass" if code is Exit.REFUSED else message
        return Acted("failed", reason or "up failed", result.diagnostics)

    return _as_phase(act)


def take_down(cluster: Cluster, report: Reporter) -> Acted:
    """Remove what a cluster has but its data."""

    def act() -> Acted:
        result = down(cluster, report, confirm=lambda _: True)
        if result.exit_code is Exit.OK:
            return Acted("down", "removed, as in fleet.yaml")
        left = ", ".join(f"{item.kind} {item.name}" for item in result.leftovers[:5])
        return Acted("failed", f"leftovers remain: {left}")

    return _as_phase(act)


def _as_phase(act: Callable[[], Acted]) -> Acted:
    """Turn what a command raises into a phase; one cluster's trouble ends no other's round."""
    try:
        return act()
    except (LifecycleError, ProviderError) as error:
        code = error.exit_code if isinstance(error, LifecycleError) else Exit.FAILED
        summary = error.diagnostics[0].summary if error.diagnostics else str(error)
        return Acted(_PHASES.get(code, "failed"), summary, error.diagnostics)
    except OSError as error:
        return _unforeseen("GC948", error)
    except Exception as error:  # noqa: BLE001  # a mistake of gcluster must not end the controller
        return _unforeseen("GC949", error)


def _unforeseen(code: str, error: Exception) -> Acted:
    message = f"{type(error).__name__}: {error}"
    return Acted(
        "failed", message, (Diagnostic(code=code, severity=Severity.ERROR, summary=message),)
    )


FIRST_S = 30.0
MOST_S = 3600.0
"""An hour: who fixes what it waits for is not kept longer."""
JITTER = 0.2
"""Share of the pause that it may be longer or shorter by: many controllers don't come at once."""


def pause_s(failures: int, chance: float) -> float:
    """Return the pause after so many failures in a row, in seconds: doubled each time.

    Args:
        failures: from 1.
        chance: even from 0 to 1.
    """
    if failures < 1:
        return 0.0
    even = min(MOST_S, FIRST_S * 2.0 ** min(failures - 1, 32))
    return even * (1 - JITTER + 2 * JITTER * chance)
