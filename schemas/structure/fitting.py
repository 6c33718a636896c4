"""Whether a value fits a schema, yes or no, fast: so that only what doesn't is walked for errors.

A schema is compiled to nested functions once. Only the keywords that our types' schemas have are
known; the tests hold every answer against jsonschema's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ..json_schema import Schema

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
