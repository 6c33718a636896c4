"""What a decision finds: nodes that are rented, what was spent, who was promised the next room."""

from __future__ import annotations

import msgspec


class Rented(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node of the pool that is there, or was asked for."""

    node: str
    usd_per_hour: float = 0.0
    """What it costs, or may at most as long as that isn't known."""
    until: float | None = None
    """By when it is given back at the latest: its job's limit and the idle time after it. None:
    its job has no limit."""
    idle_since: float | None = None
    """Since when it has no job; None: it has one, or is on its way to one."""
    always: bool = False
    """It is one of the pool's least count: it isn't given back, and costs the same anyway."""


class Promise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The room that is kept for the oldest job that waits for room."""

    job: str
    at: float
    """When it has its room at the latest."""


class Standing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The moment of a decision."""

    now: float
    rented: tuple[Rented, ...] = ()
    """Of the pool. What `to_release` names is given back first."""
    spent_today_usd: float = 0.0
    """What spilling has cost since midnight (UTC), nodes that still run included."""
    staging_s: dict[str, float] = {}
    """How long it takes to stage a storage's data, where that is known; else its limit counts."""
    promise: Promise | None = None
    """What the last round said, to be handed to the next."""
