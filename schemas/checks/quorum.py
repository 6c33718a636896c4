"""How many machines of a pool are enough to go live."""

from __future__ import annotations

from collections.abc import Iterator

from .context import CheckContext
from .registry import Finding, check


@check("GC115", summary="A quorum is larger than its pool.")
def quorum_above_size(context: CheckContext) -> Iterator[Finding]:
    """`quorum` is at most the number of machines in the pool.

    The cluster goes live once that many are up; a larger number can never be reached.
    """
    for name, pool in context.pools.items():
        size = context.size(name)
        if pool.quorum is None or not size:
            continue
        if pool.quorum > size:
            yield Finding(
                summary=f'pool "{name}": quorum {pool.quorum:,} can\'t be met by {size:,} machines',
                path=("pools", name, "quorum"),
                hint=f"at most quorum: {size}",
                relies_on=tuple(("pools", name, key) for key in ("quorum", "hosts", "count")),
            )
