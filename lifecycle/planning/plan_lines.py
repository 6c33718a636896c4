"""A plan as lines that can be compared: every field of it, but for those that only tell or age.

The lines are made from the types, so a field that is added to a plan is compared from then on.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ...stacks.provider import Resource, ResourceChange

if TYPE_CHECKING:
    from .changes import Plan

NOT_HELD: Mapping[str, str] = {
    "Plan.observed_age_s": "it only ages",
    "Plan.hit": "jobs come and go; guards that follow from them are held",
    "Plan.preflight": "asked for beside a plan; up asks anew, and refuses by itself",
    "Plan.kubernetes": "where a bundle lies on one machine; its content is in the steps' digests",
    "StepChange.jobs": "jobs come and go",
    "BooksPlan.held_back": "names jobs, which come and go; what waits no more is a change",
    "Diagnostic.file": "where the spec lies on one machine",
    "Diagnostic.span": "a comment above moves it",
    "Diagnostic.detail": "may name places on one machine; the summary says what was found",
    "Diagnostic.hint": "names the path of the spec on one machine",
    "Diagnostic.patch": "a mend of the text, for editors",
    "Diagnostic.is_secret": "how the place is shown",
}
"""TYPE.FIELD of what an approved plan isn't held to, and why."""
_PLAIN = re.compile(r'[^\s,"{}\[\]][^,"{}\[\]\n]*')
"""Text that stands in a line as it is; other text is quoted."""


def plan_lines(plan: Plan) -> list[str]:
    """Return what an approved plan is held to: a line each thing, in the order of the plan.

    What sites change comes in the order of its words: a cloud answers in any order.
    """
    lines: list[str] = []
    for field, value in _held(plan):
        if isinstance(value, msgspec.Struct):
            lines.append(f"{field}: asked")
            lines += _one_by_one(field, value)
        elif isinstance(value, tuple):
            lines += _each(field, value)
        else:
            lines.append(f"{field}: {_text(value)}")
    return lines


def _one_by_one(where: str, group: msgspec.Struct) -> Iterator[str]:
    """Yield a line for each thing that a group of changes names."""
    for field, value in _held(group):
        many = value if isinstance(value, tuple) else (value,)
        yield from (f"{where} {field}: {_text(one)}" for one in many)


def _each(where: str, values: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of a list; a kept resource has none, for nothing is done to it."""
    for value in values:
        if not isinstance(value, msgspec.Struct):
            yield f"{where}: {_text(value)}"
        elif not isinstance(value, ResourceChange) or value.effect != "keep":
            yield from _item(where, value)


def _item(where: str, item: msgspec.Struct) -> Iterator[str]:
    """Yield an item's line, then the lines of the items in it, which name the one they are in."""
    plain = [(field, value) for field, value in _held(item) if not _has_items(value)]
    yield f"{where}: {_words(plain)}"
    for field, value in _held(item):
        if _has_items(value):
            lines = _each(f"{where} {_name(item)} {field}", value)
            yield from sorted(lines) if isinstance(value[0], ResourceChange) else lines


def _has_items(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], msgspec.Struct)


def _name(item: msgspec.Struct) -> str:
    return str(getattr(item, "pool", "") or getattr(item, "site", ""))


def _words(fields: Iterable[tuple[str, Any]]) -> str:
    """Return "field value, field value"; a resource stands in the line of its change."""
    return ", ".join(
        _words(_held(value)) if isinstance(value, Resource) else f"{field} {_text(value)}"
        for field, value in fields
    )


def _held(value: msgspec.Struct) -> list[tuple[str, Any]]:
    """Return the fields that a plan is held to; one left at its default says nothing."""
    return [
        (name, said)
        for name, default in _fields(type(value))
        if (said := getattr(value, name)) != default
    ]


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a type that a plan is held to, each with its default."""
    return tuple(
        (field.name, field.default)
        for field in msgspec.structs.fields(kind)
        if f"{kind.__name__}.{field.name}" not in NOT_HELD
    )


def _text(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return "unknown" if value is None else msgspec.json.encode(value, order="sorted").decode()
