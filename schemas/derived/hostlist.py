"""Slurm host ranges: "gpu[001-064]" to names and names to the shortest range that keeps order.

As in Slurm, the width of a range's first number is the width of all: [08-100] is 08, 09 ... 100.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

MAX_HOSTS = 100_000
"""Most names one text may expand to: far above any cluster, far below what fills a memory."""

_MAX_DIGITS = 18
_PLAIN = re.compile(r"[A-Za-z0-9._:][A-Za-z0-9._:-]*")
_LITERAL = re.compile(r"[A-Za-z0-9._:-]*")
_NUMBER = re.compile(r"[0-9]+")
_DIGITS = re.compile(rf"([0-9]{{1,{_MAX_DIGITS}}})")


def host_word(pool: str) -> str:
    """Return a pool's name as hosts and resources of clouds are called: GPU_Long is gpu-long."""
    return pool.lower().replace("_", "-")


def host_stem(pool: str) -> str:
    """Return what precedes the number of a pool's machines; after a digit comes a hyphen."""
    word = host_word(pool)
    return f"{word}-" if word[-1].isdigit() else word


class HostlistError(ValueError):
    """A host range that can't be read; the message says what is wrong with it."""


def expand(text: str) -> list[str]:
    """Return the names that a host range expands to, in the order they are written.

    Args:
        text: comma-separated names; each may hold number ranges in brackets:
            "gpu[001-064]", "rack[1-2]n[01-16,20]", "a,b[1-3]", "10.0.1.[1-64]".

    Raises:
        HostlistError: the text is empty or malformed, or expands to more than MAX_HOSTS names.
    """
    if _PLAIN.fullmatch(text):
        return [text]
    names: list[str] = []
    for item in _split(text):
        dimensions: list[list[str]] = []
        size = 1
        for part, in_brackets in _parts(item):
            dimensions.append(_numbers(part, item) if in_brackets else [part])
            size *= len(dimensions[-1])
            if len(names) + size > MAX_HOSTS:
                raise HostlistError(f"{_quote(text)} expands to more than {MAX_HOSTS:,} hosts")
        names.extend(map("".join, product(*dimensions)))
    return names


def fold(names: Iterable[str]) -> str:
    """Return names as a host range: unique, in `host_order`, "" for no names.

    Numbers fold from the last dimension to the first; `expand(fold(names))` gives the names back
    in `host_order`, so only neighbours in that order are merged.
    """
    rows = sorted({_dimensions(name) for name in names}, key=_order)
    items: list[str] = []
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end][0] != rows[start][0]:
            skeleton = rows[start][0]
            for values in _merge([row[1] for row in rows[start:end]]):
                numbers = [_written(value) for value in values]
                items.append("".join(a + b for a, b in zip(skeleton, [*numbers, ""], strict=True)))
            start = end
    return ",".join(items)


def host_order(name: str) -> tuple[tuple[str, ...], tuple[tuple[int, str], ...]]:
    """Sort key of host names: by their letters, then by each number (short numbers first)."""
    return _order(_dimensions(name))


def _order(
    dimensions: tuple[tuple[str, ...], tuple[tuple[str, ...], ...]],
) -> tuple[tuple[str, ...], tuple[tuple[int, str], ...]]:
    skeleton, numbers = dimensions
    return skeleton, tuple((len(number), number) for (number,) in numbers)


def _dimensions(name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Split "r1n02" into its letters ("r", "n", "") and its numbers (("1",), ("02",))."""
    parts = _DIGITS.split(name)
    return tuple(parts[::2]), tuple((number,) for number in parts[1::2])


def _merge(rows: list[tuple[tuple[str, ...], ...]]) -> list[tuple[tuple[str, ...], ...]]:
    """Merge neighbours that differ in one dimension only, last dimension first."""
    for dimension in reversed(range(len(rows[0]))):
        merged: list[tuple[tuple[str, ...], ...]] = []
        values: list[str] = []
        previous: tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]] | None = None
        for row in rows:
            others = row[:dimension], row[dimension + 1 :]
            if others == previous:
                values.extend(row[dimension])
                continue
            if previous is not None:
                merged.append((*previous[0], tuple(values), *previous[1]))
            previous, values = others, list(row[dimension])
        if previous is not None:
            merged.append((*previous[0], tuple(values), *previous[1]))
        rows = merged
    return rows


def _written(values: tuple[str, ...]) -> str:
    """Write numbers of one dimension, brackets included where there are several."""
    if len(values) == 1:
        return values[0]
    ranges: list[tuple[str, str]] = []
    for value in values:
        if ranges:
            first, last = ranges[-1]
            if value == str(int(last) + 1).zfill(len(first)):
                ranges[-1] = first, value
                continue
        ranges.append((value, value))
    return f"[{','.join(a if a == b else f'{a}-{b}' for a, b in ranges)}]"


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets, checking that brackets open and close in turn."""
    items, start, inside = [], 0, False
    for place, character in enumerate(text):
        if character == "[":
            if inside:
                raise HostlistError(f'nested "[" in {_quote(text)}: ranges can\'t hold ranges')
            inside = True
        elif character == "]":
            if not inside:
                raise HostlistError(f'"]" without "[" in {_quote(text)}')
            inside = False
        elif character == "," and not inside:
            items.append(text[start:place])
            start = place + 1
    if inside:
        raise HostlistError(f'unclosed "[" in {_quote(text)}')
    items.append(text[start:])
    if "" in items:
        what = "an empty host range" if not text else f"an empty name in {_quote(text)}"
        raise HostlistError(what)
    return items


def _parts(item: str) -> list[tuple[str, bool]]:
    """Split one name into literal parts and bracket contents (marked True)."""
    parts: list[tuple[str, bool]] = []
    for place, part in enumerate(re.split(r"[\[\]]", item)):
        in_brackets = place % 2 == 1
        if not in_brackets and not _LITERAL.fullmatch(part):
            wrong = next(c for c in part if not _LITERAL.fullmatch(c))
            raise HostlistError(f"{_quote(wrong)} can't be part of a host name ({_quote(item)})")
        parts.append((part, in_brackets))
    if item.startswith("-"):
        raise HostlistError(f'a host name can\'t start with "-" ({_quote(item)})')
    return parts


def _numbers(content: str, item: str) -> list[str]:
    """Return the numbers of one bracket, zero padded as written."""
    if not content:
        raise HostlistError(f'empty "[]" in {_quote(item)}')
    numbers: list[str] = []
    for piece in content.split(","):
        first, dash, last = piece.partition("-")
        if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)):
            raise HostlistError(
                f"{_quote(piece)} in {_quote(item)} is neither a number nor a range such as 01-16"
            )
        if max(len(first), len(last)) > _MAX_DIGITS:
            raise HostlistError(f"a number in {_quote(item)} has more than {_MAX_DIGITS} digits")
        numbers.extend(_range(first, last, item) if dash else [first])
        if len(numbers) > MAX_HOSTS:
            raise HostlistError(f"{_quote(item)} expands to more than {MAX_HOSTS:,} hosts")
    return numbers


def _range(first: str, last: str, item: str) -> list[str]:
    """Return the numbers from first to last, as wide as the first."""
    low, high, width = int(first), int(last), len(first)
    if high < low:
        raise HostlistError(
            f"reversed range {first}-{last} in {_quote(item)}: write {last}-{first}"
        )
    if len(last) < width or (len(last) > width and last.startswith("0")):
        raise HostlistError(
            f"padding mismatch in {_quote(item)}: {first} and {last} differ in width, "
            f"write {first.zfill(len(last))}-{last.zfill(width)} or {low}-{high}"
        )
    if high - low >= MAX_HOSTS:
        raise HostlistError(f"{_quote(item)} expands to more than {MAX_HOSTS:,} hosts")
    return [str(number).zfill(width) for number in range(low, high + 1)]


def _quote(text: str) -> str:
    """Quote for a message, shortened in the middle of nowhere but never dropped."""
    shown = text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004  # a line's worth
    return f'"{shown}"' if shown.isprintable() else repr(shown)
