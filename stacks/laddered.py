"""What providers that buy by a pool's `market` tell, so that its ladder can be walked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..schemas.cost.pools import quote

if TYPE_CHECKING:
    from ..schemas.catalog import Machine
    from ..schemas.catalog.machine import Market


def priced(
    machine: Machine | None, market: Market, region: str, max_usd_per_hour: float | None = None
) -> tuple[float | None, bool]:
    """Return what a node costs on a rung by the catalog, and whether that is only a bound.

    A spot node with a price limit costs at most that.
    """
    if max_usd_per_hour is not None:
        return max_usd_per_hour, True
    found = quote(machine, market, region)
    return None if found.price is None else found.price.usd_per_hour, found.is_bound
