"""Bandwidth of an AllReduce: algorithm and bus bandwidth, and the message sizes of a sweep.

Source of the formulas: nccl-tests, doc/PERFORMANCE.md ("Bandwidth").
"""

from __future__ import annotations

from ...schemas.spec.units import ByteSize

FACTOR = 2
"""Each message of a sweep is this many times the one before it."""

ELEMENT_BYTES = 4
"""A message is whole float32 elements: sizes are rounded down to that."""


def algbw(size: int, seconds: float) -> float:
    """Return the algorithm bandwidth in GB/s (10^9 bytes) of `size` bytes in `seconds`."""
    return size / seconds / 1e9


def busbw_factor(ranks: int) -> float:
    """Return busbw / algbw of an AllReduce over `ranks`: 2(n-1)/n, what each link must carry."""
    return 2 * (ranks - 1) / ranks


def busbw(size: int, seconds: float, ranks: int) -> float:
    """Return the bus bandwidth in GB/s, which compares with the speed of a link."""
    return algbw(size, seconds) * busbw_factor(ranks)


def parse_sizes(text: str) -> tuple[int, int]:
    """Read "8B..16MiB" as (least, most) in bytes.

    Raises:
        ValueError: it isn't two sizes, or the first is the larger.
    """
    first, separator, last = text.partition("..")
    if not separator:
        raise ValueError(f'expected two sizes such as "8B..16MiB", got "{text}"')
    least, most = (int(ByteSize.parse(part.strip()).value) for part in (first, last))
    if not ELEMENT_BYTES <= least <= most:
        raise ValueError(f'"{text}": the first size must be {ELEMENT_BYTES}B or more and not above')
    return least, most


def sweep(least: int, most: int, factor: int = FACTOR) -> tuple[int, ...]:
    """Return the message sizes in bytes: `least`, then times `factor`, none above `most`."""
    sizes = [least]
    while sizes[-1] * factor <= most:
        sizes.append(sizes[-1] * factor)
    return tuple(size // ELEMENT_BYTES * ELEMENT_BYTES for size in sizes)
