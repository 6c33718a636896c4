"""Compares two recorded graphs: whether a preview agrees with what is made, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

from gcluster.stacks.pulumi.recording.graph import RecordedGraph, RecordedResource, Unknown, Value

Path: TypeAlias = tuple[str | int, ...]
_INPUTS = ("inputs", "outputs")
_EXACT = ("type", "name", "parent", "custom", "dependencies", "property_dependencies", "options")


class Absent(msgspec.Struct, frozen=True, tag_field="$", tag="absent"):
    """Nothing is there."""


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


class ChangedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that both graphs have, and that is not the same in both."""

    urn: str
    inputs: tuple[str, ...]
    """Paths of inputs that differ, e.g. tags.owner or networkInterfaces[0].nicType."""
    options: bool = False
    """Options or what it depends on differ."""
    replaced: bool | None = None
    """True where the SDK itself requests replacement; None: only the provider can say."""


class GraphDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What must happen to come from one graph to the other; empty for equal graphs."""

    added: tuple[RecordedResource, ...] = ()
    removed: tuple[RecordedResource, ...] = ()
    changed: tuple[ChangedResource, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


def diff(old: RecordedGraph, new: RecordedGraph) -> GraphDiff:
    """Compare two graphs by URN. Secrets are not recorded, so a changed secret is not seen."""
    before = {resource.urn: resource for resource in old.resources}
    after = {resource.urn: resource for resource in new.resources}
    changes = (_change(before[urn], after[urn]) for urn in before if urn in after)
    return GraphDiff(
        added=tuple(resource for urn, resource in after.items() if urn not in before),
        removed=tuple(resource for urn, resource in before.items() if urn not in after),
        changed=tuple(change for change in changes if change is not None),
    )


def _change(old: RecordedResource, new: RecordedResource) -> ChangedResource | None:
    inputs = tuple(differing(old.inputs, new.inputs))
    options = old.options != new.options or old.dependencies != new.dependencies
    if not inputs and not options:
        return None
    forced = any(_matches(path, rule) for path in inputs for rule in new.options.replace_on_changes)
    return ChangedResource(
        urn=new.urn, inputs=inputs, options=options, replaced=True if forced else None
    )


def differing(old: Value, new: Value, path: str = "") -> list[str]:
    """Return the paths at which two values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[str] = []
        for key in sorted(old.keys() | new.keys()):
            below = f"{path}.{key}" if path else key
            if key not in old or key not in new:
                found.append(below)
            else:
                found += differing(old[key], new[key], below)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [p for i, (a, b) in pairs for p in differing(a, b, f"{path}[{i}]")]
    return [] if old == new else [path]


def _matches(path: str, rule: str) -> bool:
    """Whether a rule such as `sku` or `*` covers a path."""
    return rule in {"*", path} or path.startswith((f"{rule}.", f"{rule}["))
