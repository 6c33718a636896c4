"""A job that waits for nodes, told without any scheduler's types."""

from __future__ import annotations

from typing import Annotated

import msgspec

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
    """The model that it asks for; None: that of its partition."""
    features: frozenset[str] = frozenset()
    """What it asks of nodes by name (Slurm's constraints, Kubernetes' node labels)."""
    time_limit: _Seconds | None = None
    """Longest it may run, in seconds; None: it has no limit."""
    account: str | None = None
    qos: str | None = None
    user: str | None = None
    data: tuple[str, ...] | None = None
    """Storage of the spec that it needs; None: it doesn't say."""
    held: str = ""
    """What it waits for other than nodes, in the scheduler's words; "": for nodes alone."""
    may_leave: bool = True
    """False: whoever submitted it wants it to stay."""
    returned: bool = False
    """It has spilled before and went back home."""
