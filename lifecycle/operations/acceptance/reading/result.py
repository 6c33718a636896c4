"""What a reader makes of the output of one test; nothing here judges speed."""

from __future__ import annotations

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure. Its unit is in the table of tests."""

    metric: str
    value: float
    part: str = ""
    """What of the target it is of: "GPU 3", "gpu001 gpu004" for a pair; "": the whole."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed result of one output."""

    figures: tuple[Figure, ...] = ()
    failures: tuple[str, ...] = ()
    """What failed whatever the speed: wrong data, an error, a result that is missing."""
    remarks: tuple[str, ...] = ()


MOST = 20
"""Most failures kept per output: one fault can repeat in every line."""


def reading(
    figures: list[Figure], failures: list[str], remarks: list[str] | None = None
) -> Reading:
    """Return a reading that fails closed: an output without any figure proves nothing."""
    if not figures and not failures:
        failures = ["the output has no result"]
    return Reading(
        figures=tuple(figures), failures=tuple(failures[:MOST]), remarks=tuple(remarks or ())
    )
