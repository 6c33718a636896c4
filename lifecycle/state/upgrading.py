"""A state that an older version wrote, brought to the newest format by whoever holds a lock of it.

Whoever is at work for an older version would go on writing as that does. So all locks are taken for
it, the burst agent's too: it is done alone, or not at all.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ...schemas.diagnostics import Diagnostic, Severity
from ..outcome import LifecycleError
from .formats import ASIDE, NEWEST, put_aside, upgrade
from .lock import acquire
from .store import StateStore


def bring_to_newest(
    store: StateStore, held: Collection[str], names: Collection[str]
) -> tuple[Diagnostic, ...]:
    """Upgrade a state that is older; put aside what an older version wrote into one that isn't.

    Args:
        store: the state.
        held: locks that this process holds.
        names: locks that others may take, beside those that were ever taken.

    Returns:
        What is to be told.

    Raises:
        LifecycleError: a lock is held by somebody else (exit code LOCKED); nothing was changed.
    """
    if store.format() == NEWEST:
        later = put_aside(store)
        return (_told(later),) if later else ()
    taken = {key.split("/")[1] for key in store.list("lock")}
    try:
        with acquire(store, {*taken, *names} - {*held}, reason="upgrade of the state"):
            upgrade(store)
    except LifecycleError as error:
        raise LifecycleError(*map(_alone, error.diagnostics), exit_code=error.exit_code) from None
    return ()


def _alone(found: Diagnostic) -> Diagnostic:
    why = f"the state is brought to format {NEWEST} first, while nobody else is at work on it"
    return replace(found, detail="\n".join(part for part in (found.detail, why) if part))


def _told(later: tuple[str, ...]) -> Diagnostic:
    return Diagnostic(
        code="GC1170",
        severity=Severity.WARNING,
        summary=f"an older gcluster wrote {', '.join(later)} into a state of format {NEWEST}: "
        "it is not read",
        detail=f"it lies below {ASIDE}/ in the state now",
        hint="end the older gcluster and upgrade it; gcluster history tells who was at work",
    )
