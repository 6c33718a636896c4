"""All structural errors of a document at once, in plain words. Loaded only when there are some.

jsonschema walks the document; four keywords are ours, so that each mistake is one error: a union
follows one branch (by its discriminator, else by the kind of value), and unknown keys, missing
keys and bad names are reported one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from ..diagnostics import PathTuple
from ..json_schema import Schema
from ..mend.fix import Fix
from ..suggest import closest
from .fitting import Fits, fitting
from .fixes import fix_of
from .words import Wording, explain

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
    """Check the keys of a map; the error stands at the key."""
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
    if error.validator == "unknown" and wording.meant is not None:
        spoils = (*path[:-1], wording.meant)
    if error.validator == "missing":
        spoils = (*path, str(error.validator_value))
    return StructureError(
        path=path,
        spoils=spoils,
        at_key=error.validator in {"unknown", "missing", "name", "tag"},
        wording=wording,
        fix=fix_of(error, path, wording.meant),
    )


def _without_consequences(errors: list[StructureError]) -> list[StructureError]:
    """Drop a missing key that is there under a misspelt name: one mistake is one error."""
    misspelt = {error.spoils for error in errors if error.wording.code == "GC001"}
    return [e for e in errors if not (e.wording.code == "GC002" and e.spoils in misspelt)]
