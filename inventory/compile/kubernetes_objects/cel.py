"""Plain values as CEL writes them, for the rules that the API server evaluates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def literal(value: str | int | Sequence[str] | Mapping[str, int | str | Sequence[str]]) -> str:
    """Return a value as a CEL expression: text, whole numbers, lists, and maps by text.

    Names of a spec hold letters, digits, dots, slashes and hyphens; what would end a text is
    escaped all the same.
    """
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        pairs = (f"{literal(key)}: {literal(value[key])}" for key in value)
        return f"{{{', '.join(pairs)}}}"
    return f"[{', '.join(literal(item) for item in value)}]"
