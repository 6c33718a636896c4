"""Named queries to a Prometheus, of which some clusters lack some."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .prometheus import QueryPrometheus, Sample, instant


class Queries(msgspec.Struct, frozen=True, kw_only=True):
    """PromQL by name."""

    texts: dict[str, str]
    missing: str
    """Said where the scheduler's own figures are missing."""


def named(
    query: QueryPrometheus, texts: Mapping[str, str], names: Mapping[str, str], at: float
) -> dict[str, list[Sample]]:
    """Evaluate queries at a time, with an empty answer for each of `names` that isn't one.

    Raises:
        LifecycleError: Prometheus doesn't answer (GC1198).
    """
    return {name: [] for name in names} | instant(query, texts, at)
