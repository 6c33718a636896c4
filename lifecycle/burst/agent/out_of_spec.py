"""Rented nodes beyond what the spec has by now: `up` leaves all rented ones to the agent.

Nodes of a pool that is elastic no more can't be told to every provider: `down` finds those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .book import BurstFold
from .decide import ElasticPool, GoOn, Leave, alike

REASON = "the spec has it no more"


def out_of_spec(
    pools: Collection[ElasticPool],
    always: Collection[str],
    fold: BurstFold,
    busy: Collection[str],
) -> Iterator[Leave | GoOn]:
    """Yield what gives such nodes back.

    Args:
        pools: whose nodes come and go.
        always: nodes that the spec has at all times: one that was rented may be one of them by now.
        fold: the book.
        busy: nodes that a call is at work for.
    """
    names = {pool.pool: frozenset(pool.nodes) for pool in pools}
    stay = frozenset(always) | frozenset(busy)
    mine = [
        record
        for record in fold.nodes.values()
        if record.is_live
        and record.pool in names
        and record.node not in names[record.pool]
        and record.node not in stay
    ]
    if leave := [record for record in mine if record.step != "leaving"]:
        yield Leave(records=tuple(leave), reason=REASON)
    for group in alike(record for record in mine if record.step == "leaving"):
        yield GoOn(records=group)
