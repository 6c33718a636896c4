"""Find what is said twice, in one pass over everything that is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def repeated(sources: Iterable[tuple[T, Sequence[str]]]) -> Iterator[tuple[T, T, list[str]]]:
    """Yield (source, earlier source, words) for the words of a source that an earlier one has.

    Words that one source says twice come with the source itself as the earlier one. Linear in
    the number of words.
    """
    first_source: dict[str, int] = {}
    all_sources: list[T] = []
    for index, (source, words) in enumerate(sources):
        all_sources.append(source)
        again: dict[int, list[str]] = {}
        for word in words:
            before = first_source.setdefault(word, index)
            if before != index:
                again.setdefault(before, []).append(word)
        if len(set(words)) != len(words):
            again.setdefault(index, []).extend(w for w, n in Counter(words).items() if n > 1)
        for before, repeats in again.items():
            yield source, all_sources[before], repeats
