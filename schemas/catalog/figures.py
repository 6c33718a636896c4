"""The figures of a machine type one by one, each with its source and whether it is sure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from .citation import Citation
from .machine import Machine

Value: TypeAlias = "str | float | bool | list[str]"

_ABOUT = frozenset(
    {"name", "sites", "cloud", "source", "date", "sources", "unverified", "note", "simulated"}
)
"""Fields of a machine type that are no figures."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a machine type."""

    path: str
    """Fields with dots between, elements of lists by number: nics.0.gbps."""
    value: Value
    source: str
    date: str
    unverified: bool = False


def figures(machine: Machine) -> tuple[Figure, ...]:
    """Return every figure that is known, in the order of the catalog's format."""
    plain: Mapping[str, object] = msgspec.to_builtins(machine)
    return tuple(
        _figure(machine, path, value)
        for field in machine.__struct_fields__
        if field not in _ABOUT and plain.get(field) is not None
        for path, value in _leaves(plain[field], field)
    )


def is_unverified(machine: Machine, path: str) -> bool:
    """Say whether a figure, a part of it or what it is part of is marked as not confirmed."""
    return any(_within(path, mark) or _within(mark, path) for mark in machine.unverified)


def cited(machine: Machine, path: str) -> Citation:
    """Return where a figure comes from: the closest of `sources`, else the machine's own source."""
    if path.startswith("prices."):
        price = machine.prices[int(path.split(".")[1])]
        return Citation(source=price.source, date=price.date)
    fitting = [name for name in machine.sources if _within(path, name)]
    if fitting:
        return machine.sources[max(fitting, key=len)]
    return Citation(source=machine.source, date=machine.date)


def _figure(machine: Machine, path: str, value: Value) -> Figure:
    citation = cited(machine, path)
    unverified = any(_within(path, mark) for mark in machine.unverified)
    return Figure(
        path=path, value=value, source=citation.source, date=citation.date, unverified=unverified
    )


def _within(path: str, whole: str) -> bool:
    return path == whole or path.startswith(f"{whole}.")


def _leaves(value: object, path: str) -> Iterator[tuple[str, Value]]:
    """Yield what is below a value; the source and date of a price are no figures of their own."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (path.startswith("prices.") and key in {"source", "date"}):
                yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and any(isinstance(element, dict) for element in value):
        for number, element in enumerate(value):
            yield from _leaves(element, f"{path}.{number}")
    elif isinstance(value, list):
        if value:
            yield path, _words(value)
    elif isinstance(value, str | int | float):
        yield path, value


def _words(values: Iterable[object]) -> list[str]:
    return [str(value) for value in values]
