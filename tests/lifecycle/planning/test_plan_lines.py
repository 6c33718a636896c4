"""Every field of a plan is in the lines that it is held to, or is named as not held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec import inspect
from msgspec.structs import replace
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.planning.changes import Plan
from gcluster.lifecycle.planning.plan import make_plan
from gcluster.lifecycle.planning.plan_file import (
    NOT_HELD,
    PlanFile,
    plan_file,
    plan_lines,
    refuse_other,
)
from gcluster.stacks.provider import ResourceChange

_PLAIN: dict[type[inspect.Type], Callable[[int], Any]] = {
    inspect.StrType: lambda salt: f"text {salt}",
    inspect.BoolType: lambda salt: bool(salt % 2),
    inspect.IntType: lambda salt: salt,
    inspect.FloatType: lambda salt: salt + 0.5,
    inspect.DateTimeType: lambda salt: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=salt),
}


def _sample(kind: inspect.Type, salt: int) -> Any:
    """Return a value of a type; another salt, another value. Lists have one item."""
    match kind:
        case inspect.StructType():
            return kind.cls(**{f.name: _sample(f.type, salt) for f in _fields(kind.cls)})
        case inspect.UnionType():
            return _sample(next(t for t in kind.types if not isinstance(t, inspect.NoneType)), salt)
        case inspect.VarTupleType():
            return (_sample(kind.item_type, salt),)
        case inspect.DictType():
            return {"key": _sample(kind.value_type, salt)}
        case inspect.LiteralType() | inspect.EnumType():
            options = kind.values if isinstance(kind, inspect.LiteralType) else list(kind.cls)
            return options[salt % len(options)]
    return _PLAIN[type(kind)](salt)


def _fields(struct: type[msgspec.Struct]) -> Sequence[inspect.Field]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _others(value: msgspec.Struct, salt: int) -> Iterator[tuple[str, msgspec.Struct]]:
    """Yield (TYPE.FIELD, the value with that one field changed), fields of fields too."""
    for field in _fields(type(value)):
        place = f"{type(value).__name__}.{field.name}"
        yield place, replace(value, **{field.name: _sample(field.type, salt)})
        held = getattr(value, field.name)
        item = held[0] if isinstance(held, tuple) and held else held
        if isinstance(item, msgspec.Struct) and place not in NOT_HELD:
            for inner, other in _others(item, salt):
                new = (other,) if isinstance(held, tuple) else other
                yield inner, replace(value, **{field.name: new})


_FULL: Plan = _sample(inspect.type_info(Plan), 1)
_OTHERS = [*_others(_FULL, 8)]


@pytest.fixture
def file(sample: SampleCluster) -> PlanFile:
    cluster = sample.open()
    return plan_file(cluster, make_plan(cluster))


@pytest.mark.parametrize(("place", "other"), _OTHERS, ids=[place for place, _ in _OTHERS])
def test_each_field_is_held_to_or_is_named_as_not_held(
    file: PlanFile, place: str, other: Plan
) -> None:
    approved = replace(file, plan=_FULL)
    if place in NOT_HELD:
        refuse_other(approved, other)
        return
    with pytest.raises(LifecycleError) as caught:
        refuse_other(approved, other)
    assert caught.value.exit_code is Exit.REFUSED
    lines = caught.value.diagnostics[0].detail.splitlines()[1:]
    assert {line[0] for line in lines} == {"-", "+"}, "the old line and the new"


def test_what_is_not_held_is_there_and_has_a_reason() -> None:
    assert NOT_HELD.keys() <= {place for place, _ in _OTHERS}
    assert all(NOT_HELD.values())


def test_all_types_of_a_plan_were_gone_through() -> None:
    types = {place.partition(".")[0] for place, _ in _OTHERS}
    assert types >= {
        "Plan", "SitePlan", "ResourceChange", "Resource", "StepChange", "AccountingPlan",
        "FallbackListView", "OptionView", "FieldLine", "UpgradeLine", "Guard", "Repair",
        "Diagnostic",
    }  # fmt: skip


def test_what_is_left_away_is_reported_as_what_is_added_is() -> None:
    for field in Plan.__struct_fields__:
        held = getattr(_FULL, field)
        if isinstance(held, tuple) and f"Plan.{field}" not in NOT_HELD:
            assert len(plan_lines(replace(_FULL, **{field: ()}))) < len(plan_lines(_FULL)), field


def test_accounts_that_could_not_be_queried_are_not_accounts_without_a_change() -> None:
    nothing = msgspec.convert({}, type(_FULL.accounting))
    assert plan_lines(replace(_FULL, accounting=None)) != plan_lines(
        replace(_FULL, accounting=nothing)
    )


def test_a_resource_that_is_kept_moves_nothing_and_the_order_of_a_clouds_answers_neither() -> None:
    (site,) = _FULL.sites
    (change,) = site.changes
    kept = replace(change, effect="keep")
    another = ResourceChange(effect="delete", resource=replace(change.resource, name="another"))

    def lines(*changes: ResourceChange) -> list[str]:
        return plan_lines(replace(_FULL, sites=(replace(site, changes=changes),)))

    assert lines(change, kept) == lines(change) == plan_lines(_FULL)
    assert lines(change, another) == lines(another, change) != lines(change)
    assert lines(kept, change) == lines(change)


def test_a_price_that_is_unknown_is_not_one_of_nothing() -> None:
    unknown, free = (plan_lines(replace(_FULL, usd_per_hour=usd)) for usd in (None, 0.0))
    assert unknown != free
