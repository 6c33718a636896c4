"""Plans which nodes to test together, until the faulty nodes or links are isolated: no I/O.

A test is an AllReduce over a set of two nodes or more. It fails when the set holds a bad node, or
both ends of a bad link; so one that passes clears its nodes and all links between them. Blocks are
tested first, concurrently; then halves of what failed; a single suspect together with nodes that
were cleared; and when all nodes are cleared and it still fails, links, halving them too. In the end
pairs that were never in a set that passed are tested. A round is sets without a node in common, so
they can run at the same time.

A link is named when nothing else can explain a failure, a node when it failed together with two
that were cleared: two bad links at one node are that node's fault. Two bad links between the same
two blocks are the fault of what connects these. Rounds are bounded; what is open then is undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, log2
from typing import Literal, TypeAlias

import msgspec

from ...schemas.structure.decoding import convert

NodeSet: TypeAlias = frozenset[str]

_WITNESSES = 2
_PAIR = 2


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What is at fault."""

    kind: Literal["node", "link", "blocks", "undecided"]
    """blocks: what connects two blocks; undecided: it is among these nodes, or all of them are."""
    nodes: tuple[str, ...]
    """The node; the two ends; of each block a node that fails with the other; the suspects."""


class Bisection:
    """A search that begins with a failed AllReduce over all nodes.

    Inside, a set of nodes is a whole number with a bit for each: unions and differences of
    thousands of nodes cost nothing.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        blocks: Iterable[Iterable[str]] = (),
        *,
        rounds: int | None = None,
    ) -> None:
        """Begin.

        Args:
            nodes: all that took part, two or more.
            blocks: which of them share a block; those in none count as one more.
            rounds: most rounds; None: enough for a few faults.
        """
        left, parts = dict.fromkeys(nodes), []
        for block in blocks:
            parts += [[name for name in block if left.pop(name, name) is None]]
        parts = [part for part in (*parts, list(left)) if part]
        self._names = [name for part in parts for name in part]
        self._index = {name: number for number, name in enumerate(self._names)}
        self._blocks = [self._mask(part) for part in parts]
        self._cleared = [0] * len(self._names)  # the partners of each in a set that passed
        self._forbidden = [0] * len(self._names)  # the partners with which each fails
        self._bad = 0
        self._links: list[tuple[int, int]] = []
        self._probed: set[tuple[int, int]] = set()
        self._spines: list[tuple[int, int]] = []
        self._failed = [self._mask(self._names)]
        self._tried = set(self._failed)
        self._left = rounds if rounds is not None else 16 + 8 * ceil(log2(len(self._names) + 1))

    def next_round(self) -> tuple[NodeSet, ...]:
        """Return disjoint sets to test at the same time; none: the search has ended."""
        if self._left <= 0:
            return ()
        self._left -= 1
        sources = (
            self._second_links,
            self._narrowing,
            self._pairs_of_suspects,
            self._untested_combinations,
        )
        for source in sources:
            taken, chosen = self._bad, []
            for test in source():
                if test.bit_count() >= _PAIR and not test & taken and test not in self._tried:
                    taken |= test
                    chosen.append(frozenset(self._named(test)))
            if chosen:
                return tuple(chosen)
        return ()

    def learn(self, passed: Mapping[NodeSet, bool]) -> None:
        """Take the outcome of a round."""
        for names, good in passed.items():
            test = self._mask(names)
            self._tried.add(test)
            if good:
                for number in _bits(test):
                    self._cleared[number] |= test
            else:
                self._failed.append(test)
        while any(self._conclude(test) for test in self._open()):
            pass

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What was found so far; undecided: failures that nothing named explains yet."""
        found = [Fault(kind="node", nodes=(name,)) for name in self._named(self._bad)]
        for kind, pairs in (("link", self._links), ("blocks", self._spines)):
            found += [
                convert({"kind": kind, "nodes": [self._names[n] for n in pair]}, Fault)
                for pair in pairs
                if not self._bad & (1 << pair[0] | 1 << pair[1])
            ]
        among = [test & (self._suspects(test) or test) for test in self._smallest()]
        return (*found, *(Fault(kind="undecided", nodes=self._named(test)) for test in among))

    # what to test

    def _narrowing(self) -> Iterator[int]:
        for test in self._smallest():
            suspects = self._suspects(test)
            if not suspects:
                yield self._half_of_links(test)
            elif suspects.bit_count() == 1:
                yield from self._with_cleared(suspects)
            else:
                for part in self._parts(suspects):
                    alone = part.bit_count() == 1
                    yield from self._with_cleared(part) if alone else (part,)

    def _second_links(self) -> Iterator[int]:
        """Try another pair between two blocks that a bad link joins: it may be what joins them."""
        for one, other in self._links:
            mine, theirs = self._block_of(one), self._block_of(other)
            if mine == theirs or (one, other) in self._probed:
                continue
            self._probed.add((one, other))
            cleared = self._all_cleared() & ~self._bad & ~(1 << one | 1 << other)
            for number in _bits(mine & cleared):
                if mates := theirs & cleared & ~self._cleared[number]:
                    yield 1 << number | mates & -mates
                    break

    def _parts(self, suspects: int) -> list[int]:
        inside = [block & suspects for block in self._blocks if block & suspects]
        if len(inside) > 1:
            return inside
        numbers = list(_bits(suspects))
        half = numbers[: len(numbers) // 2]
        first = sum(1 << number for number in half)
        return [first, suspects & ~first]

    def _with_cleared(self, suspect: int) -> Iterator[int]:
        own = next(block for block in self._blocks if block & suspect)
        cleared = self._all_cleared() & ~self._bad
        for group in (cleared & own, cleared & ~own):
            yield from (suspect | 1 << number for number in _bits(group))

    def _half_of_links(self, test: int) -> int:
        """Return a part of a set whose nodes are all cleared, with about half of its open links."""
        part = sum(1 << n for n in _bits(test) if self._open_links(n, test))
        total = sum(self._open_links(n, part).bit_count() for n in _bits(part)) // 2
        enough = max(1, total // 2)
        for number in reversed(list(_bits(part))):
            fewer = total - self._open_links(number, part).bit_count()
            if fewer >= enough:
                part, total = part & ~(1 << number), fewer
        return part

    def _pairs_of_suspects(self) -> Iterator[int]:
        """Pair suspects with each other: as long as none is cleared, there is no other partner."""
        if not self._smallest():
            return
        suspects = list(_bits(self._suspects(self._all_members())))
        for distance in range(len(suspects) // 2, 0, -1):
            for place, number in enumerate(suspects):
                other = suspects[(place + distance) % len(suspects)]
                if other != number:
                    yield 1 << number | 1 << other

    def _untested_combinations(self) -> Iterator[int]:
        """Put together what no test that passed had in it: a named fault may hide another."""
        good = self._all_members() & ~self._bad
        for number in _bits(good):
            missing = good & ~self._cleared[number] & ~self._forbidden[number] & ~(1 << number)
            for other in _bits(missing):
                together = 1 << number | 1 << other
                for third in _bits(good & ~together):
                    if not self._forbidden[third] & together:
                        together |= 1 << third
                yield together
                break

    # what follows

    def _conclude(self, test: int) -> bool:
        suspects = self._suspects(test)
        if not suspects:
            open_links = [(n, self._open_links(n, test)) for n in _bits(test)]
            ends = [n for n, links in open_links if links]
            if len(ends) == _PAIR and 1 << ends[0] | 1 << ends[1] in self._failed:
                self._name_link(ends[0], ends[1])
                return True
        elif suspects.bit_count() == 1:
            witnesses = {
                failed & ~suspects
                for failed in self._failed
                if failed & suspects and failed.bit_count() == _PAIR
            }
            cleared = self._all_cleared()
            if sum(not witness & ~cleared for witness in witnesses) >= _WITNESSES:
                self._bad |= suspects
                return True
        return False

    def _name_link(self, one: int, other: int) -> None:
        self._forbidden[one] |= 1 << other
        self._forbidden[other] |= 1 << one
        pair = self._block_of(one), self._block_of(other)
        for link in self._links:
            between = {self._block_of(link[0]), self._block_of(link[1])} == set(pair)
            if between and pair[0] != pair[1] and not {one, other} & set(link):
                self._name_blocks(link, pair)
                return
        self._links.append((one, other))

    def _name_blocks(self, link: tuple[int, int], pair: tuple[int, int]) -> None:
        self._spines.append(link)
        self._links = [
            each for each in self._links if {self._block_of(n) for n in each} != set(pair)
        ]
        for mine, theirs in (pair, pair[::-1]):
            for number in _bits(mine):
                self._forbidden[number] |= theirs

    # sets of nodes

    def _open(self) -> list[int]:
        """Return the failed sets that nothing named explains."""
        return [test for test in self._failed if not self._explained(test)]

    def _smallest(self) -> list[int]:
        failed = sorted(set(self._open()), key=int.bit_count)
        kept: list[int] = []
        for test in failed:
            if not any(test & other == other for other in kept):
                kept.append(test)
        return kept

    def _explained(self, test: int) -> bool:
        return bool(test & self._bad) or any(self._forbidden[n] & test for n in _bits(test))

    def _suspects(self, test: int) -> int:
        return test & ~self._bad & ~self._all_cleared()

    def _all_cleared(self) -> int:
        return sum(1 << number for number, mates in enumerate(self._cleared) if mates)

    def _open_links(self, number: int, test: int) -> int:
        return test & ~self._cleared[number] & ~(1 << number)

    def _all_members(self) -> int:
        return (1 << len(self._names)) - 1

    def _block_of(self, number: int) -> int:
        return next(block for block in self._blocks if block >> number & 1)

    def _mask(self, names: Iterable[str]) -> int:
        return sum(1 << self._index[name] for name in names)

    def _named(self, test: int) -> tuple[str, ...]:
        return tuple(self._names[number] for number in _bits(test))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
