"""References as a graph: accounts with their parts, and circles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..spec import Account


class AccountTree:
    """The accounts of a spec by their parents, read once and queried for many of them."""

    def __init__(self, accounts: Mapping[str, Account]) -> None:
        """Take all accounts of the spec; a parent that isn't among them is no parent."""
        self._parts: dict[str, list[str]] = {}
        for name, account in accounts.items():
            if account.parent is not None and account.parent in accounts:
                self._parts.setdefault(account.parent, []).append(name)

    def with_parts(self, named: Iterable[str]) -> frozenset[str]:
        """Return the accounts that are named, and all that are part of them, however far below."""
        pending = list(named)
        found = set(pending)
        while pending:
            below = [n for n in self._parts.get(pending.pop(), ()) if n not in found]
            found.update(below)
            pending += below
        return frozenset(found)


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
