"""Fit a document to a type; where it does not fit, `prune` finds the parts that do."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ..diagnostics import PathTuple
from ..spec.units import decode_quantity
from .decoding import convert, missing_tag
from .document import Document, Structured

T = TypeVar("T", bound=msgspec.Struct)


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
