"""The spec's rules for one partition's spill, resolved: limits, permitted users, target pool."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from .....schemas.derived.storage import DataLocation  # fields of a Struct

HOUR_S = 3600.0
DAY_S = 86400.0
CENT = 0.005
"""USD by which sums of prices may differ from a ceiling: they are sums of floats."""
LONGEST_S = 365 * DAY_S
"""What a job without a time limit is counted with."""


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """What rented nodes may cost."""

    where: str
    """Its place in the spec."""
    usd: float
    """What is left of it for this pool."""
    per: Literal["hour", "day"]


class PurchaseOption(msgspec.Struct, frozen=True, kw_only=True):
    """One way to buy nodes of the pool."""

    key: str
    """spot, on-demand, reservation ..., as `market` of the pool has them, in their order."""
    usd_per_hour: float | None
    """Of one node, at most; None: not known."""
    runs_for: float | None = None
    """Longest such a node runs, in seconds; None: no limit."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The pool that jobs spill to."""

    pool: str
    site: str
    machine: str | None
    gpu_model: str | None
    gpus_per_node: int
    features: frozenset[str]
    most: int
    """Nodes it may have at once."""
    always: int = 0
    """Nodes of it that are always there: they cost the same whether something spills or not."""
    max_time: float | None = None
    """Longest run time of a job in the partitions that the pool is in; None: no limit."""
    purchase_options: tuple[PurchaseOption, ...] = ()
    """Empty: its nodes cost nothing."""
    software_differs: tuple[str, ...] = ()
    """Versions that differ from the partition's nodes: "driver 580 and 570"."""
    data: dict[str, DataLocation] = {}
    start_up: float = 0.0
    """Longest time from the request of a node until it takes jobs, in seconds."""
    idle: float = 0.0
    """How long a node is kept after its last job, in seconds."""

    @property
    def is_free(self) -> bool:
        """Whether nothing is rented."""
        return not self.purchase_options


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """When and where jobs of a partition spill."""

    partition: str
    after: float
    """Seconds that a job waits first."""
    target: Target
    ceilings: tuple[Ceiling, ...] = ()
    gpu_models: frozenset[str] = frozenset()
    """What the partition's own nodes have."""
    max_time: float | None = None
    """Longest job that may spill: the least of the partition's and the spill's limits."""
    qos_max_time: dict[str, float] = {}
    max_nodes: int | None = None
    accounts: frozenset[str] | None = None
    """Accounts that may spend, with all that are part of them; None: all."""
    qos: frozenset[str] | None = None
    needs: tuple[str, ...] = ()
    """Assumed storage of a job that declares none."""

    def longest(self, limit: float | None) -> float:
        """Return how long a node of a job with this limit may be rented, in seconds."""
        run = LONGEST_S if limit is None else limit
        return self.target.start_up + run + self.target.idle

    @property
    def caps(self) -> tuple[float, ...]:
        """Known prices of the pool's options, the dearest first; a free pool has the price 0."""
        if self.target.is_free:
            return (0.0,)
        known = {r.usd_per_hour for r in self.target.purchase_options if r.usd_per_hour is not None}
        return tuple(sorted(known, reverse=True))

    def options_up_to(self, cap: float | None) -> tuple[str, ...]:
        """Return the options that cost at most so much, in their order; None: all of them."""
        return tuple(
            option.key
            for option in self.target.purchase_options
            if cap is None or (option.usd_per_hour is not None and option.usd_per_hour <= cap)
        )


class Days(NamedTuple):
    """What a rent costs, day by day."""

    first: int
    """Days since the epoch (UTC)."""
    usd: tuple[float, ...]


def by_day(begins: float, ends: float, usd_per_hour: float) -> Days:
    """Split the cost of a rent by the days (UTC) it lies in; what costs nothing has none."""
    first = int(begins // DAY_S)
    if usd_per_hour == 0:
        return Days(first, ())
    costs: list[float] = []
    at = begins
    while at < ends:
        midnight = (first + len(costs) + 1) * DAY_S
        until = min(midnight, ends)
        costs.append((until - at) / HOUR_S * usd_per_hour)
        at = until
    return Days(first, tuple(costs))
