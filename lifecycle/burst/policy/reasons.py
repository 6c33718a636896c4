"""What speaks for and against moving a job: a stable word for programs, a sentence for people."""

from __future__ import annotations

import msgspec

WORDS: dict[str, str] = {
    "held": "it waits for nodes and for nothing else",
    "wait": "it has waited longer than `after`",
    "leave": "whoever submitted it lets it leave",
    "gpu": "the pool has the GPU model that it asks for, and as many a node",
    "features": "the pool's nodes have the features that it asks for",
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
"""Each word in the order of the checks, and what holds where it speaks for the move."""

ROOM = frozenset({"nodes", "hour", "day"})
"""What changes when other jobs end: a job that only these hold back waits for its turn."""

PASSING = ROOM | {"held", "wait", "turn"}
"""What time changes. Any other word stands until the job, the spec or the catalog changes."""


class Reason(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    word: str
    """A key of WORDS."""
    holds: bool
    """Whether it speaks for the move."""
    text: str
    """The sentence, without its full stop."""

    @property
    def lasts(self) -> bool:
        """Whether it speaks against the move until the job, the spec or the catalog changes."""
        return not self.holds and self.word not in PASSING
