"""Whether what a preview shows is what apply then does: two recordings, compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

from .recorded import RecordedGraph, RecordedResource, Unknown, Value

Path: TypeAlias = tuple[str | int, ...]
_INPUTS = ("inputs", "outputs")
_EXACT = ("type", "name", "parent", "custom", "dependencies", "property_dependencies", "options")


class Absent(msgspec.Struct, frozen=True, tag_field="$", tag="absent"):
    """Nothing stands there."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the two graphs say different things."""

    urn: str
    """Resource; "" for outputs of the stack."""
    path: Path
    """Into the resource; () for the whole resource, which one graph lacks."""
    reason: str


class Agreement(msgspec.Struct, frozen=True):
    """True where the graphs agree; else `differences` says where not."""

    differences: tuple[Difference, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is no difference."""
        return not self.differences


def agrees(applied: RecordedGraph, preview: RecordedGraph) -> Agreement:
    """Compare a program's two recordings: where the preview knows a value, it must be the same."""
    return Agreement(tuple(_differences(applied, preview)))


def _differences(applied: RecordedGraph, preview: RecordedGraph) -> Iterator[Difference]:
    made = {resource.urn: resource for resource in applied.resources}
    shown = {resource.urn: resource for resource in preview.resources}
    for urn in sorted(made.keys() | shown.keys()):
        if urn not in shown:
            yield Difference(urn=urn, path=(), reason="is made, but the preview does not show it")
        elif urn not in made:
            yield Difference(urn=urn, path=(), reason="is in the preview, but is not made")
        else:
            yield from _of_resource(made[urn], shown[urn])
    for path in _disagreeing(applied.outputs, preview.outputs, ("outputs",)):
        yield Difference(urn="", path=path, reason="differs")


def _of_resource(made: RecordedResource, shown: RecordedResource) -> Iterator[Difference]:
    for field in _EXACT:
        if getattr(made, field) != getattr(shown, field):
            reason = f"{getattr(shown, field)!r} in the preview, {getattr(made, field)!r} when made"
            yield Difference(urn=made.urn, path=(field,), reason=reason)
    for field in _INPUTS:
        for path in _disagreeing(getattr(made, field), getattr(shown, field), (field,)):
            yield Difference(urn=made.urn, path=path, reason="differs")


def _disagreeing(made: Value | Absent, shown: Value | Absent, path: Path) -> Iterator[Path]:
    """Yield the paths where the preview knows a value and it is another."""
    if isinstance(shown, Unknown):
        return
    if isinstance(made, dict) and isinstance(shown, dict):
        for key in sorted(made.keys() | shown.keys()):
            yield from _disagreeing(_at(made, key), _at(shown, key), (*path, key))
    elif isinstance(made, list) and isinstance(shown, list) and len(made) == len(shown):
        for index, (left, right) in enumerate(zip(made, shown, strict=True)):
            yield from _disagreeing(left, right, (*path, index))
    elif made != shown or type(made) is not type(shown):
        yield path


def _at(values: Mapping[str, Value], key: str) -> Value | Absent:
    return values[key] if key in values else Absent()
