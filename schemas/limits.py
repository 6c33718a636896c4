"""Several limits at once; None is no limit."""

from __future__ import annotations

from collections.abc import Iterable

from .spec.units import Duration


def strictest(limits: Iterable[Duration | None]) -> Duration | None:
    """Return what holds where each of some limits does."""
    known = (limit for limit in limits if limit is not None)
    return min(known, key=lambda limit: limit.value, default=None)


def most_generous(limits: Iterable[Duration | None]) -> Duration | None:
    """Return what holds where any of some limits may be chosen; None too where there are none."""
    known: list[Duration] = []
    for limit in limits:
        if limit is None:
            return None
        known.append(limit)
    return max(known, key=lambda limit: limit.value, default=None)
