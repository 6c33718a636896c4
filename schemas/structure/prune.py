"""Cut broken parts out of a document, so that the rest can still be typed and checked, and say why.

What is cut is the smallest thing that can be missing: an entry of a map or list, or an optional
key. Keys of the root can always be cut: each is a part of its own.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ..diagnostics import Diagnostic, PathTuple, Severity
from ..spec.units import decode_quantity
from .decoding import convert, missing_tag
from .document import Document, Structured
from .errors import MAX_ERRORS, StructureError, branch_for, structure_errors
from .fix.patches import patch_of
from .json_schema import Schema, inlined_schema

T = TypeVar("T", bound=msgspec.Struct)

_ROUNDS = 5
"""Cutting one part can leave its holder too short; a few rounds settle that."""


class Pruned:
    """A document without its broken parts, and the way back to the places in the file."""

    def __init__(self, data: Any, schema: Schema) -> None:
        """Start with nothing cut."""
        self._original = data
        self._schema = schema
        self._cuts: dict[PathTuple, set[str | int]] = {}
        self.data = data

    def cut(self, paths: list[PathTuple]) -> None:
        """Cut the smallest parts that hold these paths (in the coordinates of the file)."""
        for path in paths:
            where = self._removable(path)
            if where:
                self._cuts.setdefault(where[:-1], set()).add(where[-1])
        ancestors = {path[:length] for path in self._cuts for length in range(len(path) + 1)}
        self.data = self._rebuilt(self._original, (), ancestors)

    @property
    def cuts(self) -> frozenset[PathTuple]:
        """What was cut, in the coordinates of the file."""
        return frozenset((*holder, step) for holder, steps in self._cuts.items() for step in steps)

    def original(self, path: PathTuple) -> PathTuple:
        """Translate a path of the pruned document to the file: list indexes move."""
        if not self._cuts:
            return path
        there: PathTuple = ()
        for step in path:
            gone = self._cuts.get(there, set())
            index = step
            if isinstance(step, int) and gone:
                for cut in sorted(cut for cut in gone if isinstance(cut, int)):
                    index = index + 1 if isinstance(index, int) and cut <= index else index
            there = (*there, index)
        return there

    def _removable(self, path: PathTuple) -> PathTuple:
        """Return the longest part of `path` that may be missing."""
        node: Any = self._schema
        value = self._original
        best: PathTuple = ()
        for depth, step in enumerate(path):
            branch = branch_for(node, value)
            if branch is None:
                break
            child, optional = _child(branch, step)
            if optional or depth == 0:
                best = path[: depth + 1]
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                break
            if not isinstance(child, dict):
                break
            node = child
        return best

    def _rebuilt(self, value: Any, path: PathTuple, ancestors: set[PathTuple]) -> Any:
        """Copy what changes; share the rest."""
        if path not in ancestors:
            return value
        gone = self._cuts.get(path, set())
        if isinstance(value, list):
            return [
                self._rebuilt(item, (*path, index), ancestors)
                for index, item in enumerate(value)
                if index not in gone
            ]
        if isinstance(value, dict):
            return {
                key: self._rebuilt(item, (*path, key), ancestors)
                for key, item in value.items()
                if key not in gone
            }
        return value


def _child(schema: Schema, step: str | int) -> tuple[Any, bool]:
    """Return the schema one step down, and whether the value there may be missing."""
    if isinstance(step, int):
        return schema.get("items"), True
    properties = schema.get("properties", {})
    if step in properties:
        return properties[step], step not in schema.get("required", ())
    return schema.get("additionalProperties"), True


def fit_parts(
    kind: type[T], document: Document, *, file: str, spoilt: frozenset[PathTuple], reason: str
) -> Structured:
    """Type the parts of a document that fit, and say what is wrong with the rest.

    Args:
        kind: the struct type of the root.
        document: what was composed.
        file: name for the diagnostics.
        spoilt: paths that were reported already; they are cut out in silence.
        reason: what msgspec said, for want of a better explanation.
    """
    schema = inlined_schema(kind)
    pruned = Pruned(document.data, schema)
    found = structure_errors(document.data, schema)
    errors = [error for error in found if not _is_within(error.path, spoilt)]
    reported = [_located(error, document, file) for error in errors[:MAX_ERRORS]]
    if len(found) > MAX_ERRORS:
        reported.append(_too_many(file, MAX_ERRORS))
        return Structured(value=None, parts={}, diagnostics=tuple(reported))
    if not reported and not spoilt:
        reported.append(_unexplained(reason, file))
    cuts = [*spoilt, *(error.path for error in found)]
    for _ in range(_ROUNDS):
        pruned.cut(cuts)
        if _converts(kind, pruned.data):
            break
        cuts = [pruned.original(e.path) for e in structure_errors(pruned.data, schema)]
        if not [cut for cut in cuts if cut]:
            break
    parts, lost = _typed_parts(kind, pruned)
    return Structured(
        value=None,
        parts=parts,
        diagnostics=tuple(reported),
        spoilt=spoilt | pruned.cuts | {error.spoils for error in found} | lost,
        original=pruned.original,
    )


def _converts(kind: type[T], data: Any) -> bool:
    """Say whether data fits by now: far cheaper than to look for errors that aren't there."""
    try:
        convert(data, kind, dec_hook=decode_quantity)
    except msgspec.ValidationError:
        return False
    return not missing_tag(kind, data)


def _typed_parts(kind: type[T], pruned: Pruned) -> tuple[dict[str, Any], set[PathTuple]]:
    """Type each field of the root by itself; return those that hold and the paths of the rest."""
    parts: dict[str, Any] = {}
    lost: set[PathTuple] = set()
    data = pruned.data if isinstance(pruned.data, dict) else {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in data:
            if field.default is not msgspec.NODEFAULT:
                parts[field.name] = field.default
            elif field.default_factory is not msgspec.NODEFAULT:
                parts[field.name] = field.default_factory()
            continue
        try:
            parts[field.name] = convert(
                data[field.encode_name], field.type, dec_hook=decode_quantity
            )
        except msgspec.ValidationError:
            lost.add((field.encode_name,))
    return parts, lost


def _is_within(path: PathTuple, roots: frozenset[PathTuple]) -> bool:
    return any(path[:length] in roots for length in range(len(path) + 1))


def _located(error: StructureError, document: Document, file: str) -> Diagnostic:
    wording = error.wording
    span = document.locate(error.path, key=error.at_key and wording.code != "GC007")
    return Diagnostic(
        code=wording.code,
        severity=Severity.ERROR,
        summary=wording.summary,
        path=error.path,
        file=file,
        span=span,
        hint=wording.hint,
        is_secret=wording.is_secret,
        patch=None if error.fix is None else patch_of(error.fix, document),
    )


def _too_many(file: str, limit: int) -> Diagnostic:
    return Diagnostic(
        code="GC024",
        severity=Severity.ERROR,
        summary=f"more than {limit:,} structural errors: the rest is not listed",
        file=file,
        hint="is this the right file?",
    )


def _unexplained(reason: str, file: str) -> Diagnostic:
    return Diagnostic(
        code="GC006", severity=Severity.ERROR, summary=f"the spec does not fit: {reason}", file=file
    )
