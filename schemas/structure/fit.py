"""Fit a document to a type: the fast way, and the parts that hold where some don't."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_args

import msgspec

from ..diagnostics import Diagnostic, PathTuple, Severity
from ..spec.units import Quantity
from .decoding import convert
from .document import Document
from .fix.patches import patch_of
from .json_schema import Schema, inlined_schema

if TYPE_CHECKING:
    from .errors import StructureError
    from .prune import Pruned

T = TypeVar("T", bound=msgspec.Struct)

_ROUNDS = 5
"""Cutting one part can leave its holder too short; a few rounds settle that."""


class Structured(msgspec.Struct, frozen=True, kw_only=True):
    """What could be typed: all of it (`value`), or the root's fields that hold (`parts`)."""

    value: Any | None
    parts: Mapping[str, Any]
    """Typed fields by attribute name; all of them when `value` is there."""
    diagnostics: tuple[Diagnostic, ...] = ()
    spoilt: frozenset[PathTuple] = frozenset()
    """Paths whose value is unknown: no check may speak about them."""
    original: Callable[[PathTuple], PathTuple] = lambda path: path
    """From the typed parts' paths to the file's."""


def decode_quantity(kind: type, value: Any) -> Any:
    """Read a Quantity for msgspec.

    Raises:
        ValueError: the text is no quantity of this kind.
        NotImplementedError: the type is none of ours.
    """
    if issubclass(kind, Quantity):
        return kind.parse(value)
    raise NotImplementedError(kind)


def fit(
    kind: type[T],
    document: Document,
    *,
    file: str,
    spoilt: frozenset[PathTuple] = frozenset(),
) -> Structured:
    """Type a document.

    Args:
        kind: the struct type of the root.
        document: what was composed.
        file: name for the diagnostics.
        spoilt: paths that were reported already; they are cut out in silence.
    """
    typed = "" if spoilt else _typed(kind, document)
    if isinstance(typed, Structured):
        return typed
    return _fit_parts(kind, document, file=file, spoilt=spoilt, reason=typed)


def _typed(kind: type[T], document: Document) -> Structured | str:
    """Return the whole document, typed, or why it does not fit."""
    try:
        value = convert(document.data, kind, dec_hook=decode_quantity)
    except msgspec.ValidationError as error:
        return str(error)
    parts = {field: getattr(value, field) for field in kind.__struct_fields__}
    return _missing_tag(kind, document.data) or Structured(value=value, parts=parts)


@lru_cache(maxsize=8)
def _lone_tags(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return (key, tag key) of the root's fields that hold a tagged struct with no alternative."""
    found: list[tuple[str, str]] = []
    for field in msgspec.structs.fields(kind):
        structs = [part for part in _flat(field.type) if hasattr(part, "__struct_config__")]
        tags = [s.__struct_config__.tag_field for s in structs if s.__struct_config__.tag_field]
        if len(tags) == 1:
            found.append((field.encode_name, tags[0]))
    return tuple(found)


def _flat(annotation: Any) -> Iterator[Any]:
    """Yield a type and all that it is put together from."""
    yield annotation
    for part in get_args(annotation):
        yield from _flat(part)


def _missing_tag(kind: type[msgspec.Struct], data: Any) -> str:
    """Return what is wrong when a tag is missing that msgspec forgives, else "".

    Where a tagged struct has no alternative yet, msgspec takes it without its tag. Files must
    carry the tag all the same: they would stop loading once there is an alternative.
    """
    for key, tag_key in _lone_tags(kind):
        part = data.get(key)
        if isinstance(part, dict) and tag_key not in part:
            return f"{key} has no {tag_key}"
    return ""


def _fit_parts(
    kind: type[T], document: Document, *, file: str, spoilt: frozenset[PathTuple], reason: str
) -> Structured:
    from .errors import (  # noqa: PLC0415  # jsonschema costs 0.1 s
        MAX_ERRORS,
        structure_errors,
    )
    from .prune import Pruned  # noqa: PLC0415  # as above

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
    return not _missing_tag(kind, data)


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


Fits: TypeAlias = Callable[[Any], bool]

_KINDS: dict[str, Fits] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in {int, float},
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
}
_LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
    "minProperties": lambda value, limit: len(value) >= limit,
    "maxProperties": lambda value, limit: len(value) <= limit,
}


def fitting(schema: Schema) -> Fits:
    """Return the function that says whether a value fits a schema without references."""
    if "anyOf" in schema:
        branches = [fitting(branch) for branch in schema["anyOf"]]
        return lambda value: any(fits(value) for fits in branches)
    if "enum" in schema:
        options = {(type(option), option) for option in schema["enum"]}
        return lambda value: type(value) not in {dict, list} and (type(value), value) in options
    needs = [_KINDS[schema["type"]], *_limits(schema)]
    if schema["type"] == "object":
        needs.append(_entries(schema))
    elif "items" in schema:
        item = fitting(schema["items"])
        needs.append(lambda value: all(map(item, value)))
    elif "pattern" in schema:
        search = re.compile(schema["pattern"]).search
        needs.append(lambda value: search(value) is not None)
    if len(needs) == 1:
        return needs[0]
    return lambda value: all(fits(value) for fits in needs)


def _limits(schema: Schema) -> list[Fits]:
    """Return a function for each bound that the schema gives."""
    return [
        partial(_within, holds, schema[keyword])
        for keyword, holds in _LIMITS.items()
        if keyword in schema
    ]


def _within(holds: Callable[[Any, Any], bool], limit: float, value: Any) -> bool:
    return holds(value, limit)


def _entries(schema: Schema) -> Fits:
    """Return the function that looks at the entries of a mapping."""
    known = {key: fitting(value) for key, value in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    others = schema.get("additionalProperties", True)
    other: Fits = fitting(others) if isinstance(others, dict) else lambda _: others is not False
    names = schema.get("propertyNames")
    named: Fits = fitting({"type": "string", **names}) if names else lambda _: True

    def fits(value: dict[str, Any]) -> bool:
        if not required <= value.keys():
            return False
        return all(named(key) and known.get(key, other)(entry) for key, entry in value.items())

    return fits
