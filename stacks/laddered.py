"""What providers that buy by a pool's `market` tell, so that its ladder can be walked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from ..schemas.cost.pools import quote
from ..schemas.spec import ClusterSpec
from .provider import ResourceGraph, SiteContext

if TYPE_CHECKING:
    from ..schemas.catalog import Machine
    from ..schemas.catalog.machine import Market


class RungOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One rung of a pool's ladder: a way to buy, in a zone."""

    key: str
    """Stable while the ladder has it, and unique in the pool: spot-use1-az4."""
    market: str
    """As the catalog calls it."""
    zone: str | None = None
    """None: the cloud chooses."""
    usd_per_hour: float | None
    """Of one node; None: unknown."""
    is_bound: bool = False
    """The price isn't the rung's own: a node costs at most this."""
    buy_hours: int | None = None
    """It is a capacity block to buy for so many hours: paid at once, not refundable."""
    whole: str = ""
    """Why a pool is on this rung with all of its nodes or with none; "": each node by itself."""


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource of the program buys."""

    pool: str
    nodes: tuple[str, ...] = ()
    """None for a capacity block: its nodes are resources of their own."""


@runtime_checkable
class Laddered(Protocol):
    """MUST, for providers that buy by a pool's `market`: what a fallback ladder is walked by."""

    def rungs(self, spec: ClusterSpec, site: str, pool: str) -> tuple[RungOffer, ...]:
        """Return the rungs of a pool in the order in which they are tried; offline."""
        ...

    def graph_taken(self, context: SiteContext) -> ResourceGraph:
        """Return the desired resources with nodes on the rungs that were taken; offline."""
        ...

    def purchases(self, spec: ClusterSpec, site: str) -> Mapping[str, Purchase]:
        """Return name of a resource, as ProviderError.lacking has it -> what it buys; offline."""
        ...


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
