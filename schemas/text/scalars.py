"""Plain scalars by the core schema of YAML 1.2: `no` is text, `010` is ten, `12:30` is text."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("0123456789+-.")
_LONGEST_NUMBER = 64
_INT64 = 2**63

CORE_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")
)
"""The tags that mean what the value is anyway; every other tag is refused."""


def resolve(text: str) -> Scalar:
    """Return what a plain (unquoted) scalar means.

    Raises:
        ValueError: it is a number that can't be kept exactly: infinite, not a number, or a whole
            number beyond 64 bits.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    return _number(text)


def _number(text: str) -> Scalar:
    if _INT.fullmatch(text):
        whole = int(text, 0 if text[:2] in {"0o", "0x"} else 10) if _fits(text) else _INT64
        if not -_INT64 <= whole < _INT64:
            raise ValueError("a whole number beyond 64 bits")
        return whole
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not _is_finite(text)):
        raise ValueError("not a finite number")
    return float(text) if _FLOAT.fullmatch(text) else text


def _fits(text: str) -> bool:
    """Say whether a number is short enough to be read at all (reading is quadratic in it)."""
    return len(text) <= _LONGEST_NUMBER


def _is_finite(text: str) -> bool:
    return _fits(text) and math.isfinite(float(text))


def fits_tag(tag: str, value: object) -> bool:
    """Say whether a scalar with an explicit core tag is of that kind ("!!int four" is not)."""
    kind = tag.rsplit(":", 1)[-1]
    kinds: dict[str, type | tuple[type, ...]] = {
        "int": int, "float": (int, float), "bool": bool, "null": type(None),
    }  # fmt: skip
    if kind not in kinds:
        return False
    return isinstance(value, kinds[kind]) and (kind == "bool" or not isinstance(value, bool))
