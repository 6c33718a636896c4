"""Fit a document to a type; where it does not fit, `prune` finds the parts that do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar, get_args

import msgspec

from ..diagnostics import Diagnostic, PathTuple
from ..spec.units import Quantity
from .decoding import convert
from .document import Document

T = TypeVar("T", bound=msgspec.Struct)


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
    from .prune import fit_parts  # noqa: PLC0415  # jsonschema costs 0.1 s

    return fit_parts(kind, document, file=file, spoilt=spoilt, reason=typed)


def _typed(kind: type[T], document: Document) -> Structured | str:
    """Return the whole document, typed, or why it does not fit."""
    try:
        value = convert(document.data, kind, dec_hook=decode_quantity)
    except msgspec.ValidationError as error:
        return str(error)
    parts = {field: getattr(value, field) for field in kind.__struct_fields__}
    return missing_tag(kind, document.data) or Structured(value=value, parts=parts)


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


def missing_tag(kind: type[msgspec.Struct], data: Any) -> str:
    """Return what is wrong when a tag is missing that msgspec forgives, else "".

    Where a tagged struct has no alternative yet, msgspec takes it without its tag. Files must
    carry the tag all the same: they would stop loading once there is an alternative.
    """
    for key, tag_key in _lone_tags(kind):
        part = data.get(key)
        if isinstance(part, dict) and tag_key not in part:
            return f"{key} has no {tag_key}"
    return ""
