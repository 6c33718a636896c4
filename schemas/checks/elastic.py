"""Pools that grow and shrink with the queue."""

from __future__ import annotations

from collections.abc import Iterator

from ..mend.fix import Replace
from ..spec import Count
from .context import CheckContext
from .registry import Finding, check


@check("GC116", summary="A pool's least count is above its largest.")
def count_reversed(context: CheckContext) -> Iterator[Finding]:
    """`count: {min, max}` goes from the machines that are always there to the most at once.

    A pool that never changes takes a plain number: `count: 4`.
    """
    for name, pool in context.pools.items():
        count = pool.count
        if isinstance(count, Count) and count.min > count.max:
            path = ("pools", name, "count")
            swapped = f"{{min: {count.max}, max: {count.min}}}"
            yield Finding(
                summary=f'pool "{name}": at least {count.min:,} machines, '
                f"but at most {count.max:,}",
                path=(*path, "min"),
                hint=f"write count: {swapped}",
                relies_on=((*path, "min"), (*path, "max")),
                fix=Replace(path, swapped),
            )
