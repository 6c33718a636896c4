"""How a structural error is fixed by a machine, for those where there is one right answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...diagnostics import PathTuple
from ...spec.units import BusBandwidth, ByteSize, DataRate, Duration, Percent, Quantity, Throughput
from .edits import Fix, Insert, Quote, RenameKey, Replace, ReplaceWord
from .patches import yaml_text

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


_TRUE = frozenset({"yes", "on", "y", "true"})
_FALSE = frozenset({"no", "off", "n", "false"})
_KINDS = (BusBandwidth, ByteSize, DataRate, Duration, Percent, Throughput)
_QUANTITIES: dict[str, type[Quantity]] = {kind.json_schema()["pattern"]: kind for kind in _KINDS}


def fix_of(error: ValidationError, path: PathTuple, suggestion: str | None) -> Fix | None:
    """Return the fix of an error, or None where a person must decide.

    Args:
        error: what the walker found.
        path: where, from the root.
        suggestion: the word that its message suggests.
    """
    kind = str(error.validator)
    if kind == "unknown":
        return RenameKey(path, suggestion) if suggestion is not None else None
    if kind == "tag":
        return ReplaceWord(path, suggestion) if suggestion is not None else None
    if kind == "enum":
        return _only_word(error, path, suggestion)
    if kind == "missing":
        return _only_value(error, path)
    if kind == "pattern":
        return _own_form(error, path)
    return _right_kind(error.instance, error.schema, path) if kind == "type" else None


def _only_word(error: ValidationError, path: PathTuple, suggestion: str | None) -> Fix | None:
    options: Any = error.validator_value
    word = options[0] if len(options) == 1 else suggestion
    is_scalar = not isinstance(error.instance, dict | list)
    if str(error.instance).count("/") > str(word).count("/"):
        return None  # the apiVersion of another kind of file
    return ReplaceWord(path, word) if is_scalar and isinstance(word, str) else None


def quantity_of(schema: Any) -> type[Quantity] | None:
    """Return the kind of quantity that a schema's text is; None: it is another text."""
    return _QUANTITIES.get(schema.get("pattern", "")) if isinstance(schema, dict) else None


def _own_form(error: ValidationError, path: PathTuple) -> Fix | None:
    """Write a quantity as this language does, where another tool's form says the same."""
    kind = quantity_of(error.schema)
    written = None if kind is None else kind.rewritten(str(error.instance))
    return None if written is None else ReplaceWord(path, written)


def _only_value(error: ValidationError, path: PathTuple) -> Fix | None:
    """Add a key that can have one value only, such as apiVersion."""
    key = str(error.validator_value)
    about = error.schema["properties"][key]  # type: ignore[index]  # a required key is a property
    choices = about.get("enum", ())
    return Insert(path, key, yaml_text(str(choices[0])), first=True) if len(choices) == 1 else None


def _right_kind(value: Any, schema: Any, path: PathTuple) -> Fix | None:
    """Write a value as the kind that is expected, where it says the same."""
    branches = {branch.get("type"): branch for branch in branches_of(schema)}
    if isinstance(value, str):
        folded = value.casefold()
        if "boolean" in branches and folded in _TRUE | _FALSE:
            return Replace(path, "true" if folded in _TRUE else "false")
        if "integer" in branches and re.fullmatch(r"[1-9][0-9]{0,17}|0", value, re.ASCII):
            return Replace(path, value)
        if branches.get("array", {}).get("items", {}).get("type") == "string":
            return Replace(path, f"[{yaml_text(value)}]")
    if isinstance(value, int | float) and not isinstance(value, bool) and "string" in branches:
        pattern = branches["string"].get("pattern", "")
        return Quote(path) if re.search(pattern, str(value)) else None
    return None


def branches_of(schema: Any) -> Iterator[Any]:
    """Yield the alternatives of a schema."""
    for branch in schema.get("anyOf", ()):
        yield from branches_of(branch)
    if "anyOf" not in schema:
        yield schema
