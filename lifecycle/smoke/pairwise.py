"""Finds slow nodes and links by differences among pairs: no I/O, no constant that all must reach.

Every node is tested with a few others, two by two, all pairs of a round at the same time. A pair is
fast only when both its nodes are and what is between them, so a node is as good as its best pair;
the nodes' best are compared with their median. What is at fault is the node common to slow pairs.
Where both nodes of a slow pair are fast with others it is the link between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TypeAlias

from .bisect import Fault

Pair: TypeAlias = tuple[str, str]

PARTNERS = 4
"""Others that each node is tested with: enough that a good one is among them, at any size."""
SLOW_SHARE = 0.1
"""Below the median by this share a node is slow; healthy ones are within a few percent."""
SPREADS = 3
"""And by so many robust standard deviations (1.4826 times the median of deviations), where the
healthy differ more than that."""
_TO_SIGMA = 1.4826


def pair_rounds(nodes: Sequence[str], partners: int = PARTNERS) -> tuple[tuple[Pair, ...], ...]:
    """Return rounds of pairs without a node in common; no pair comes twice (circle method).

    Args:
        nodes: two or more. Of an odd number another one pauses in each round.
        partners: with how many others each node is tested, at most; all, where there are fewer.
    """
    ring: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    first, rest = ring[0], ring[1:]
    every, rounds = len(rest), min(partners, len(rest))
    found = []
    for number in range(rounds):
        turn = number * every // rounds  # far apart, so that partners are in other places
        turned = [first, *rest[turn:], *rest[:turn]]
        half = len(turned) // 2
        met = zip(turned[:half], reversed(turned[half:]), strict=True)
        found.append(tuple((a, b) for a, b in met if a is not None and b is not None))
    return tuple(found)


def suspects(speeds: Mapping[Pair, float]) -> tuple[str, ...]:
    """Return the nodes whose best pair is slow, by bus bandwidths in GB/s (0: the pair failed)."""
    best = _best(speeds)
    limit = _limit(best)
    return tuple(sorted(node for node, speed in best.items() if speed < limit))


def slow_parts(
    speeds: Mapping[Pair, float], blocks: Iterable[Iterable[str]] = ()
) -> tuple[Fault, ...]:
    """Return the nodes at fault, and the links that are slow between two that are not.

    Two slow links between the same two blocks, without a node in common and with no fast one
    between these blocks, are the fault of what connects the blocks. () where nothing differs: two
    nodes alone, or all equal.
    """
    limit, bad = _limit(_best(speeds)), suspects(speeds)
    block_of = {node: number for number, block in enumerate(blocks) for node in block}
    sound = {pair: speed for pair, speed in speeds.items() if not set(pair) & set(bad)}
    links = [pair for pair, speed in sound.items() if speed < limit]
    faults = [Fault(kind="node", nodes=(node,)) for node in bad]
    named: set[frozenset[int]] = set()
    for link in links:
        between = frozenset(block_of.get(node, -1) for node in link)
        comparable = [pair for pair in sound if _between(pair, block_of) == between]
        apart = any(not set(link) & set(other) for other in comparable)
        if len(between) == len(link) and apart and all(pair in links for pair in comparable):
            if between not in named:
                named.add(between)
                faults.append(Fault(kind="blocks", nodes=link))
        else:
            faults.append(Fault(kind="link", nodes=link))
    return tuple(faults)


def _between(pair: Pair, block_of: Mapping[str, int]) -> frozenset[int]:
    return frozenset(block_of.get(node, -1) for node in pair)


def _best(speeds: Mapping[Pair, float]) -> dict[str, float]:
    best: dict[str, float] = {}
    for pair, speed in speeds.items():
        for node in pair:
            best[node] = max(best.get(node, 0.0), speed)
    return best


def _limit(best: Mapping[str, float]) -> float:
    """Return the bus bandwidth below which a node's best pair counts as slow."""
    if not best:
        return 0.0
    middle = median(best.values())
    spread = _TO_SIGMA * median(abs(speed - middle) for speed in best.values())
    return middle - max(SLOW_SHARE * middle, SPREADS * spread)
