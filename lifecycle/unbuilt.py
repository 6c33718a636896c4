"""What the spec language can say and this version doesn't act on yet: said, never passed over."""

from __future__ import annotations

from gcluster.lifecycle.outcome import LifecycleError, failure


def not_built(what: str, written: str) -> LifecycleError:
    """Return the error for a part of the spec that nothing can run without.

    Args:
        what: the part of the language.
        written: how the spec says it.
    """
    return failure(
        "GC950",
        f"{written} is not built yet",
        hint=f"validate, explain and cost know {what}; leave it out to go on",
    )
