"""What providers ask for now, where a ceiling holds: the catalog's prices are of its own day."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from .decide import ElasticPool

FRESH_S = 300.0
"""Seconds for which an answer counts: spot prices move by the hour (EC2 User Guide, "Spot Instances
pricing history"), and lists of prices by the month."""


class Prices:
    """Answers by pool. Filled beside the rounds, so that a slow price list holds up nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Know nothing yet."""
        self._clock = clock
        self._said: dict[str, tuple[float, dict[str, float]]] = {}

    def is_fresh(self, pool: str) -> bool:
        """Say whether a pool's prices were asked for lately."""
        said = self._said.get(pool)
        return said is not None and self._clock() - said[0] < FRESH_S

    def learn(self, pool: str, usd_per_hour: dict[str, float]) -> None:
        """Keep rung -> USD per hour of one node, as the provider says it now."""
        self._said[pool] = (self._clock(), usd_per_hour)

    def of(self, pool: ElasticPool) -> ElasticPool:
        """Return a pool with the dearer of what the catalog has and what its provider said."""
        _, said = self._said.get(pool.pool, (0.0, {}))
        dearer = {k: max(usd, pool.prices.get(k, 0.0)) for k, usd in said.items() if usd > 0}
        return msgspec.structs.replace(pool, prices={**pool.prices, **dearer})
