"""Fields that differ between two specs, as paths of the spec, with their update policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ...schemas.spec import ClusterSpec
from ...schemas.spec.model import SpecModel, UpdatePolicy
from ...schemas.spec.pool import Count
from ...schemas.spec.units import Quantity
from .changes import Disruption, FieldLine


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field that differs."""

    path: str
    """"pools.train.count"."""
    keys: tuple[str, ...]
    """The same, key by key."""
    before: Any = None
    """As plain data; None: it wasn't there."""
    after: Any = None
    """As plain data; None: it is there no more."""


def differing(before: Any, after: Any, keys: tuple[str, ...] = ()) -> Iterator[FieldChange]:
    """Yield the fields that differ between two specs as plain data, in order of their names.

    Maps are walked; anything else, lists too, is one field. A key of None is as good as none.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from differing(before.get(key), after.get(key), (*keys, key))
    elif before != after:
        yield FieldChange(path=".".join(keys), keys=keys, before=before, after=after)


_LONGEST = 40
"""Characters of a value that is shown; a longer one isn't."""


def field_lines(before: ClusterSpec, after: ClusterSpec) -> tuple[FieldLine, ...]:
    """Return a line for each field that differs, in the order of the spec's types."""
    return tuple(_nouns(before, after, ()))


def policy_of(noun: type[SpecModel], field: str) -> UpdatePolicy:
    """Return the policy of a field, which is declared in its class.

    Raises:
        KeyError: the class declares none for the field.
    """
    for owner in noun.__mro__:
        policies: dict[str, UpdatePolicy] = vars(owner).get("UPDATES", {})
        if field in policies:
            return policies[field]
    raise KeyError(f"{noun.__name__}.{field}")


def _nouns(before: SpecModel, after: SpecModel, keys: tuple[str, ...]) -> Iterator[FieldLine]:
    names = dict(zip(after.__struct_fields__, after.__struct_encode_fields__, strict=True))
    for field, written in names.items():
        policy = policy_of(type(after), field)
        yield from _values(getattr(before, field), getattr(after, field), policy, (*keys, written))


def _values(
    before: Any, after: Any, policy: UpdatePolicy, keys: tuple[str, ...]
) -> Iterator[FieldLine]:
    if before == after:
        return
    if isinstance(before, SpecModel) and type(before) is type(after):
        yield from _nouns(before, after, keys)
    elif isinstance(before, dict) and isinstance(after, dict):
        yield from _maps(before, after, policy, keys)
    else:
        yield _line(before, after, _of_change(before, after, policy), keys)


def _maps(
    before: dict[str, Any], after: dict[str, Any], policy: UpdatePolicy, keys: tuple[str, ...]
) -> Iterator[FieldLine]:
    for name in dict.fromkeys((*before, *after)):
        place = (*keys, str(name))
        if name not in after:
            yield _line(before[name], None, _of_change(1, 0, policy), place)
        elif name not in before:
            added: Disruption = "in-place" if policy == "in-place" else "none"
            yield _line(None, after[name], added, place)
        else:
            # One entry that differs: of a map of entries its fields decide the disruption.
            yield from _values(before[name], after[name], policy, place)


def _of_change(before: Any, after: Any, policy: UpdatePolicy) -> Disruption:
    if policy != "shrink":
        return policy
    was, will = _size(before), _size(after)
    return "none" if was is not None and will is not None and will > was else "destroy"


def _size(value: Any) -> float | None:
    """Return a number, a size, or the most of what grows and shrinks; None: there is none."""
    if isinstance(value, Count):
        return value.max
    if isinstance(value, (int, float)):
        return value
    return float(value.value) if isinstance(value, Quantity) else None


def _line(before: Any, after: Any, disruption: Disruption, keys: tuple[str, ...]) -> FieldLine:
    return FieldLine(
        path=".".join(keys), disruption=disruption, before=_short(before), after=_short(after)
    )


def _short(value: Any) -> str:
    """Return a plain value as text; "" for one that is long, or is no plain one."""
    if value is None or isinstance(value, (msgspec.Struct, dict, list, tuple)):
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST else ""
