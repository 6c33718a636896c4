"""Values that a JSON Schema accepts, for property tests: the subset of it that our types make."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_MOST_ENTRIES = 2
_ANYTHING: dict[str, Any] = {"enum": ["", "word", 7, True, None, [1], {"key": ["value"]}]}
"""A double of a schema that takes any value."""


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return the strategy for a schema without references (`inlined_schema`)."""
    if "anyOf" in schema:
        return st.one_of(*(values(branch) for branch in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        return _objects(schema)
    if kind == "array":
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", _MOST_ENTRIES), max(_MOST_ENTRIES, least))
        return st.lists(values(schema.get("items", _ANYTHING)), min_size=least, max_size=most)
    if kind == "string":
        return _texts(schema)
    return _SCALARS[kind](schema)


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    properties = schema.get("properties")
    if properties is None:
        others = schema.get("additionalProperties", _ANYTHING)
        entries = values(others or _ANYTHING) if isinstance(others, dict) else st.none()
        return st.dictionaries(
            _texts(schema.get("propertyNames", {"type": "string"})),
            entries,
            min_size=schema.get("minProperties", 0),
            max_size=_MOST_ENTRIES,
        )
    required = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {key: values(value) for key, value in properties.items() if key in required},
        optional={key: values(value) for key, value in properties.items() if key not in required},
    )


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    pattern = schema.get("pattern")
    if pattern is None:
        least = schema.get("minLength", 0)
        return _TEXT.filter(lambda text: len(text) >= least)
    whole = re.compile(pattern)
    bare = re.sub(r"\(\?[=!].*?\)", "", pattern).removeprefix("^").removesuffix("$")
    alphabet = st.characters(codec="utf-8", exclude_characters="\0")
    most = schema.get("maxLength")
    return st.from_regex(bare, fullmatch=True, alphabet=alphabet).filter(
        lambda text: whole.search(text) is not None and (most is None or len(text) <= most)
    )


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[float]:
    above = schema.get("exclusiveMinimum")
    return st.floats(
        min_value=above if above is not None else schema.get("minimum"),
        max_value=schema.get("maximum"),
        exclude_min=above is not None,
        allow_nan=False,
        allow_infinity=False,
    )


_SCALARS = {
    "integer": lambda schema: st.integers(
        schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
    ),
    "number": _numbers,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
}
