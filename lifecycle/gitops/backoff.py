"""How long to wait before something that failed is tried again."""

from __future__ import annotations

FIRST_S = 30.0
MOST_S = 3600.0
"""An hour: who mends what it waits for is not kept longer."""
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
