"""Circles among things that refer to each other, found in time linear in the references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def cycles(edges: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Yield circles in the order they are met, each thing in one at most.

    A circle starts with its first thing in the order of `edges`. Every set of things that refer to
    each other in circles yields at least one.
    """
    done: set[str] = set()
    order = {name: index for index, name in enumerate(edges)}
    for start in edges:
        trail: list[str] = []
        place: dict[str, int] = {}
        waiting = [(start, iter(edges[start]))] if start not in done else []
        while waiting:
            name, targets = waiting[-1]
            if name not in place:
                place[name] = len(trail)
                trail.append(name)
            target = next(targets, None)
            if target is None:
                waiting.pop()
                done.add(name)
                del place[trail.pop()]
            elif target in place:
                yield _from_first(trail[place[target] :], order)
            elif target in edges and target not in done:
                waiting.append((target, iter(edges[target])))


def _from_first(circle: list[str], order: Mapping[str, int]) -> list[str]:
    """Turn a circle so that it starts with its first thing."""
    first = min(range(len(circle)), key=lambda index: order[circle[index]])
    return [*circle[first:], *circle[:first]]
