"""What the AllReduce of the smoke test is asked to run."""

from __future__ import annotations

from collections.abc import Iterator

from ..spec.units import ByteSize
from .context import CheckContext
from .registry import Finding, check

_PATH = ("smoke", "allreduce", "sizes")


@check("GC201", summary="The smallest AllReduce size is above the largest.")
def sizes_reversed(context: CheckContext) -> Iterator[Finding]:
    """`sizes` goes from the smallest message to the largest: 8B..16MiB.

    The floor is compared at the largest size, so an empty range would test nothing. The smallest
    size holds at least one double (8 B).
    """
    low, high = context.smoke.allreduce.sizes.split("..")
    smallest, largest = ByteSize.parse(low), ByteSize.parse(high)
    if smallest.value > largest.value:
        yield Finding(
            summary=f"the smallest size {low} is above the largest {high}",
            path=_PATH,
            hint=f"write {high}..{low}",
            meant=f"{high}..{low}",
        )
    elif smallest.value < 1:
        yield Finding(summary="an AllReduce of 0 B moves nothing", path=_PATH, hint="start at 8B")
