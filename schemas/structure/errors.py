"""Structural errors of a document, in the words of a person who wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from msgspec import structs

from ..diagnostics import PathTuple, closest, listing
from ..spec.model import NAME_RULES, SECRET_PATTERN
from ..spec.units import ByteSize, Duration, Quantity
from .fix.edits import Fix
from .fix.structural import branches_of, fix_of, quantity_of
from .json_schema import Fits, Schema, fitting
from .source import look_alike


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one mistake; `suggestion` replaces the key or word that is wrong."""

    code: str
    summary: str
    hint: str = ""
    suggestion: str | None = None
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
_LIKELY_UNITS: dict[type[Quantity], tuple[str, ...]] = {
    Duration: ("s", "m", "h"),
    ByteSize: ("GiB", "GB", "MiB"),
}
"""What a number without a unit may have meant: Slurm's times are in minutes, and its sizes in MiB
or GiB, by field."""
_NO_NEWLINE = r"(?!\n)"


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
    wording = _WRITERS.get(str(error.validator), _other)(error, dotted(path))
    odd = look_alike(error.instance) if isinstance(error.instance, str) else ""
    if odd:
        hint = f"{odd}; {wording.hint}" if wording.hint else odd
        return structs.replace(wording, hint=hint)
    return wording


def _unknown(error: ValidationError, _where: str) -> Wording:
    key = str(error.instance)
    parent = dotted(tuple(error.absolute_path)[:-1])
    known = error.schema["properties"]  # type: ignore[index]  # a closed object has properties
    suggestion = closest(key, known)
    summary = f'unknown key "{_cut(key)}" in {parent}'
    if suggestion is not None:
        return Wording(
            code="GC001", summary=f'{summary}: did you mean "{suggestion}"?', suggestion=suggestion
        )
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
    suggestion = closest(tag, mapping) if isinstance(tag, str) else None
    summary = f"unknown {where}: {_shown(tag)}"
    if suggestion is not None:
        summary += f', did you mean "{suggestion}"?'
    return Wording(
        code="GC007", summary=summary, hint=f"choose one of: {choices}", suggestion=suggestion
    )


def _type(error: ValidationError, where: str) -> Wording:
    value = error.instance
    expected, examples = _expected(error.schema)
    wanted = " or ".join(dict.fromkeys(expected))
    hint = f"write it such as {examples}" if examples else ""
    if kinds := [k for branch in branches_of(error.schema) if (k := quantity_of(branch))]:
        hint = _unit_hint(kinds[0], error) or hint
    if wanted == _KINDS["boolean"] and str(value).casefold() in _OLD_BOOLEANS:
        hint = "YAML 1.2 knows only true and false"
    return Wording(
        code="GC003", summary=f"{where}: expected {wanted}, got {_got(value)}", hint=hint
    )


def _unit_hint(kind: type[Quantity], error: ValidationError) -> str:
    """Return what to write for a number without a unit; "" for anything else."""
    number = str(error.instance)
    units = _LIKELY_UNITS.get(kind)
    if isinstance(error.instance, bool) or units is None or not number.isdecimal():
        return ""
    return "say the unit: " + " or ".join(f'"{kind.parse(number + u).written}"' for u in units)


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
    suggestion = closest(error.instance, options) if isinstance(error.instance, str) else None
    summary = f"{where}: {_got(error.instance)} is not one of {listing(options)}"
    if len(options) == 1:
        summary = f"{where} must be {options[0]}, got {_got(error.instance)}"
    if suggestion is not None and len(options) > 1:
        summary += f': did you mean "{suggestion}"?'
    return Wording(code="GC004", summary=summary, suggestion=suggestion)


def _pattern(error: ValidationError, where: str) -> Wording:
    schema: Any = error.schema
    examples = _examples(schema)
    rule = schema.get("description", "")
    hint = f"write it such as {examples}" if examples else rule
    if error.validator_value in NAME_RULES:
        hint = NAME_RULES[error.validator_value]
    kind = quantity_of(schema)
    if kind is not None:
        written = kind.rewritten(str(error.instance))
        hint = f'write it "{written}"' if written is not None else _unit_hint(kind, error) or hint
    if not hint:
        hint = f"it must match {str(error.validator_value).removesuffix(_NO_NEWLINE)}"
    if error.validator_value == SECRET_PATTERN:  # what is there may be the secret: not repeated
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


MAX_ERRORS = 1_000
"""Errors reported of one file; more than that is the wrong file, not a wrong key."""


class StructureError(msgspec.Struct, frozen=True, kw_only=True):
    """One mistake. `spoils` is the path whose value is unknown because of it."""

    path: PathTuple
    spoils: PathTuple
    at_key: bool
    wording: Wording
    fix: Fix | None = None


def structure_errors(data: Any, schema: Schema) -> list[StructureError]:
    """Return every structural error, in no particular order, MAX_ERRORS + 1 at most."""
    found: list[StructureError] = []
    for error in _validator_class()(schema).iter_errors(data):
        if len(found) > MAX_ERRORS:
            break
        found.append(_translated(error))
    return _without_consequences(found)


def branch_for(schema: Schema, value: Any) -> Schema | None:
    """Return the branch of a union that `value` belongs to, or None; other schemas as they are."""
    if "anyOf" not in schema:
        return schema
    branches: list[Schema] = schema["anyOf"]
    if "discriminator" not in schema:
        chosen = next((branch for branch in branches if _takes(branch, value)), None)
        return branch_for(chosen, value) if chosen is not None else None
    tag_key = schema["discriminator"]["propertyName"]
    tag = value.get(tag_key) if isinstance(value, dict) else None
    return next((b for b in branches if tag in b["properties"][tag_key]["enum"]), None)


def _takes(branch: Schema, value: Any) -> bool:
    """Say whether a branch is for this kind of JSON value."""
    if "anyOf" in branch:
        return isinstance(value, dict)
    if "enum" in branch:
        return any(type(value) is type(option) for option in branch["enum"])
    checker = _validator_class().TYPE_CHECKER
    return bool(checker.is_type(value, branch["type"]))


def _union(validator: Any, branches: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Follow the one branch that fits."""
    branch = branch_for(schema, value)
    if branch is not None:
        yield from validator.descend(value, branch)
        return
    tag_union = schema if "discriminator" in schema else None
    if tag_union is None and isinstance(value, dict):
        tag_union = next((b for b in branches if "discriminator" in b), None)
    if tag_union is None or not isinstance(value, dict):
        yield ValidationError("", validator="type")
        return
    tag_key = tag_union["discriminator"]["propertyName"]
    misspelt = closest(tag_key, value) if tag_key not in value else None
    if misspelt is not None:
        yield ValidationError(
            "",
            validator="unknown",
            path=(misspelt,),
            instance=misspelt,
            schema={"properties": {tag_key: {}}},
        )
        return
    where = (tag_key,) if tag_key in value else ()
    yield ValidationError("", validator="tag", validator_value=tag_union, path=where)


def _closed(validator: Any, others: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Report each unknown key by itself, or check the entries of a map."""
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    fits = _fitting(others) if isinstance(others, dict) else None
    for key in value:
        if key in known:
            continue
        if fits is None:
            yield ValidationError("", validator="unknown", path=(key,), instance=key)
        elif not fits(value[key]):
            yield from validator.descend(value[key], others, path=key)


def _items(validator: Any, item: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """Check the items of a list; those that fit are not walked: there may be 10,000 hosts."""
    if not isinstance(value, list):
        return
    fits = _fitting(item)
    for index, entry in enumerate(value):
        if not fits(entry):
            yield from validator.descend(entry, item, path=index)


_FITTING: dict[int, tuple[Schema, Fits]] = {}
"""Compiled schemas by identity; each keeps its schema, so that no other gets its id."""


def _fitting(schema: Schema) -> Fits:
    if id(schema) not in _FITTING:
        _FITTING[id(schema)] = schema, fitting(schema)
    return _FITTING[id(schema)][1]


def _names(validator: Any, names: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """Check the keys of a map; the error is at the key."""
    if not isinstance(value, dict):
        return
    for key in value:
        for error in validator.descend(key, names, path=key):
            error.validator = "name"
            yield error


def _required(_validator: Any, keys: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """Report each missing key by itself."""
    if isinstance(value, dict):
        for key in keys:
            if key not in value:
                yield ValidationError("", validator="missing", validator_value=key)


@lru_cache(maxsize=1)
def _validator_class() -> Any:
    """Return jsonschema's validator with our keywords, and numbers as the typed spec reads them."""
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, v: type(v) is int)
    return extend(  # type: ignore[no-untyped-call]  # the stubs leave it open
        Draft202012Validator,
        {
            "anyOf": _union,
            "additionalProperties": _closed,
            "items": _items,
            "propertyNames": _names,
            "required": _required,
        },
        type_checker=checker,
    )


def _translated(error: ValidationError) -> StructureError:
    path: PathTuple = tuple(error.absolute_path)
    wording = explain(error, path)
    spoils = path
    if error.validator == "unknown" and wording.suggestion is not None:
        spoils = (*path[:-1], wording.suggestion)
    # A key with a colon in it holds its value too: another word would lose that.
    holds_value = error.validator == "unknown" and ":" in str(error.instance)
    if error.validator == "missing":
        spoils = (*path, str(error.validator_value))
    return StructureError(
        path=path,
        spoils=spoils,
        at_key=error.validator in {"unknown", "missing", "name", "tag"},
        wording=wording,
        fix=fix_of(error, path, None if holds_value else wording.suggestion),
    )


def _without_consequences(errors: list[StructureError]) -> list[StructureError]:
    """Drop a missing key that is there under a misspelt name: one mistake is one error."""
    misspelt = {error.spoils for error in errors if error.wording.code == "GC001"}
    return [e for e in errors if not (e.wording.code == "GC002" and e.spoils in misspelt)]
