"""What a decision finds: nodes that are rented, what was spent, who was promised the next room."""

from __future__ import annotations

from typing import Annotated

import msgspec


class Rented(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node of the pool that exists or was requested."""

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


class Backfill(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The room that is kept for the oldest job that waits for room."""

    job: str
    at: float
    """When it has its room at the latest."""


class Situation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The moment of a decision."""

    now: float
    rented: tuple[Rented, ...] = ()
    """Of the pool. What `to_release` names is given back first."""
    spent_today_usd: float = 0.0
    """What spilling has cost since midnight (UTC), nodes that still run included."""
    staging_s: dict[str, float] = {}
    """How long it takes to stage a storage's data, where that is known; else its limit counts."""
    promise: Backfill | None = None
    """The reservation of the last round, passed to the next."""


_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class PendingJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job of a partition's queue."""

    id: str
    eligible_since: float
    """Since when it could have started: its submit time, or when what it depends on was done; for
    one that went back home, when it came back. Seconds since the epoch."""
    nodes: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    gpus_per_node: Annotated[int, msgspec.Meta(ge=0)] = 0
    gpu_model: str | None = None
    """The GPU model that it requests; None: that of its partition."""
    features: frozenset[str] = frozenset()
    """Node features that it requires (Slurm's constraints, Kubernetes' node labels)."""
    time_limit: _Seconds | None = None
    """Longest it may run, in seconds; None: it has no limit."""
    account: str | None = None
    qos: str | None = None
    user: str | None = None
    data: tuple[str, ...] | None = None
    """Storage of the spec that it needs; None: not declared."""
    held: str = ""
    """What it waits for other than nodes, as the scheduler names it; "": for nodes alone."""
    may_leave: bool = True
    """False: its user wants it to stay."""
    returned: bool = False
    """It has spilled before and went back home."""


WORDS: dict[str, str] = {
    "held": "it waits for nodes and for nothing else",
    "wait": "it has waited longer than `after`",
    "leave": "its submitter lets it leave",
    "gpu": "the pool has the requested GPU model, and as many a node",
    "features": "the pool's nodes have the requested features",
    "software": "both sides have the same versions of what jobs are built against",
    "size": "the whole pool has as many nodes, and `only.max_nodes` allows them",
    "time": "its time limit is within those of the partition, the spill, its QOS and the pool",
    "account": "its account is in `only.accounts`, or below one that is",
    "qos": "its QOS is in `only.qos`",
    "data": "its data is there, or can be staged within `stage_within`",
    "price": "where there is a ceiling, a way to buy nodes has a known price",
    "alone": "by itself it stays below every ceiling",
    "nodes": "the pool has room for it now",
    "hour": "what runs and this job together stay below the ceilings for an hour",
    "day": "what was spent, what runs and this job stay below the ceiling of each day it may run",
    "turn": "it takes nothing from the job that was promised the next room",
}
"""Each check's key in order, with the condition under which it counts for the move."""

ROOM = frozenset({"nodes", "hour", "day"})
"""What changes when other jobs end: a job that only these hold back waits for its turn."""

PASSING = ROOM | {"held", "wait", "turn"}
"""Checks that depend on time. All others hold until the job, the spec or the catalog changes."""


class Reason(msgspec.Struct, frozen=True):
    """The result of one check."""

    word: str
    """A key of WORDS."""
    holds: bool
    """Whether it counts for the move."""
    text: str
    """The sentence, without its full stop."""

    @property
    def lasts(self) -> bool:
        """Whether it counts against the move until the job, the spec or the catalog changes."""
        return not self.holds and self.word not in PASSING
