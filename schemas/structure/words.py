"""The words of structural errors: one plain sentence a mistake, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from jsonschema.exceptions import ValidationError

from ..diagnostics import PathTuple
from ..spec.noun import NAME_PATTERN, NAME_RULE
from ..spec.words import SECRET_PATTERN
from ..suggest import closest, listing


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one mistake; `meant` replaces the key or word that is wrong."""

    code: str
    summary: str
    hint: str = ""
    meant: str | None = None
    is_secret: bool = False
    """What was written may be a secret."""


_Writer: TypeAlias = Callable[[ValidationError, str], Wording]

_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping (key: value)",
    "array": "a list",
}
_OLD_BOOLEANS = frozenset({"yes", "no", "on", "off", "y", "n"})
_LONGEST_SHOWN = 60


def dotted(path: PathTuple) -> str:
    """Write a path as people do: pools.train.hosts[3]; "the file" for the root."""
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return written.removeprefix(".")[:200] or "the file"


def explain(error: ValidationError, path: PathTuple) -> Wording:
    """Say what is wrong in plain words.

    Args:
        error: what the walker found.
        path: where, from the root.
    """
    writer = _WRITERS.get(str(error.validator), _other)
    return writer(error, dotted(path))


def _unknown(error: ValidationError, _where: str) -> Wording:
    key = str(error.instance)
    parent = dotted(tuple(error.absolute_path)[:-1])
    known = error.schema["properties"]  # type: ignore[index]  # a closed object has properties
    meant = closest(key, known)
    summary = f'unknown key "{_cut(key)}" in {parent}'
    if meant is not None:
        return Wording(code="GC001", summary=f'{summary}: did you mean "{meant}"?', meant=meant)
    return Wording(code="GC001", summary=summary, hint=f"known here: {listing(known)}")


def _missing(error: ValidationError, where: str) -> Wording:
    key = str(error.validator_value)
    about = error.schema["properties"][key]  # type: ignore[index]  # a required key is a property
    choices = about.get("enum", ())
    hint = f"add {key}: {choices[0]}" if len(choices) == 1 else about.get("description", "")
    if len(tags := about.get("discriminator", {}).get("mapping", {})) == 1:
        hint = f"add {key}: {{{about['discriminator']['propertyName']}: {next(iter(tags))}}}"
    return Wording(code="GC002", summary=f'missing key "{key}" in {where}', hint=hint)


def _tag(error: ValidationError, where: str) -> Wording:
    union: Any = error.validator_value
    tag_key, mapping = union["discriminator"]["propertyName"], union["discriminator"]["mapping"]
    choices = listing(mapping)
    found: Any = error.instance
    if tag_key not in found:
        summary = f'missing key "{tag_key}" in {where}'
        return Wording(code="GC007", summary=summary, hint=f"choose one of: {choices}")
    tag = found[tag_key]
    meant = closest(tag, mapping) if isinstance(tag, str) else None
    summary = f"unknown {where}: {_shown(tag)}"
    if meant is not None:
        summary += f', did you mean "{meant}"?'
    return Wording(code="GC007", summary=summary, hint=f"choose one of: {choices}", meant=meant)


def _type(error: ValidationError, where: str) -> Wording:
    value = error.instance
    expected, examples = _expected(error.schema)
    wanted = " or ".join(dict.fromkeys(expected))
    hint = f"write it such as {examples}" if examples else ""
    if wanted == _KINDS["boolean"] and str(value).casefold() in _OLD_BOOLEANS:
        hint = "YAML 1.2 knows only true and false"
    return Wording(
        code="GC003", summary=f"{where}: expected {wanted}, got {_got(value)}", hint=hint
    )


def _expected(schema: Any) -> tuple[list[str], str]:
    """Return the kinds of value a schema takes, and examples."""
    if "anyOf" not in schema:
        kind = _KINDS.get(schema.get("type", "object"), "")
        return [kind] if kind else [], _examples(schema)
    kinds: list[str] = []
    examples = _examples(schema)
    for branch in schema["anyOf"]:
        more, more_examples = _expected(branch)
        kinds += more
        examples = examples or more_examples
    return kinds, examples


def _enum(error: ValidationError, where: str) -> Wording:
    options = [str(option) for option in error.validator_value]  # type: ignore[union-attr]
    meant = closest(error.instance, options) if isinstance(error.instance, str) else None
    summary = f"{where}: {_got(error.instance)} is not one of {listing(options)}"
    if len(options) == 1:
        summary = f"{where} must be {options[0]}, got {_got(error.instance)}"
    if meant is not None and len(options) > 1:
        summary += f': did you mean "{meant}"?'
    return Wording(code="GC004", summary=summary, meant=meant)


def _pattern(error: ValidationError, where: str) -> Wording:
    schema: Any = error.schema
    examples = _examples(schema)
    hint = f"write it such as {examples}" if examples else schema.get("description", "")
    if error.validator_value == NAME_PATTERN:
        hint = NAME_RULE
    if error.validator_value == SECRET_PATTERN:  # what stands there may be the secret: not repeated
        summary = f"{where}: a secret is given by reference, never written out"
        return Wording(code="GC006", summary=summary, hint=hint, is_secret=True)
    return Wording(
        code="GC006", summary=f"{where}: {_shown(error.instance)} has the wrong form", hint=hint
    )


def _name(error: ValidationError, _where: str) -> Wording:
    schema: Any = error.schema
    parent = dotted(tuple(error.absolute_path)[:-1])
    return Wording(
        code="GC006",
        summary=f"{_shown(error.instance)} can't be a name in {parent}",
        hint=schema.get("description", ""),
    )


def _bound(word: str) -> _Writer:
    def write(error: ValidationError, where: str) -> Wording:
        summary = f"{where} must be {word} {error.validator_value}, got {error.instance}"
        return Wording(code="GC005", summary=summary)

    return write


def _empty(_error: ValidationError, where: str) -> Wording:
    return Wording(code="GC005", summary=f"{where} is empty: at least one is needed")


def _other(error: ValidationError, where: str) -> Wording:
    return Wording(code="GC006", summary=f"{where}: {_shown(error.instance)} does not fit here")


_WRITERS: dict[str, _Writer] = {
    "unknown": _unknown,
    "missing": _missing,
    "tag": _tag,
    "type": _type,
    "enum": _enum,
    "pattern": _pattern,
    "name": _name,
    "minimum": _bound("at least"),
    "maximum": _bound("at most"),
    "minLength": _empty,
    "minItems": _empty,
    "minProperties": _empty,
}


def _examples(schema: Any) -> str:
    return " or ".join(f'"{example}"' for example in schema.get("examples", ()))


def _got(value: Any) -> str:
    """Name a value with its kind: text "four", the number 4, a list."""
    if value is None:
        return "nothing (the value is empty)"
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a mapping (key: value)"
    if isinstance(value, str):
        return f"text {_shown(value)}"
    return _shown(value) if isinstance(value, bool) else f"the number {value}"


def _shown(value: Any) -> str:
    """Write a value as in the file, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{_cut(value)}"' if value.isprintable() else repr(_cut(value))
    return _got(value) if value is None or isinstance(value, dict | list) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
