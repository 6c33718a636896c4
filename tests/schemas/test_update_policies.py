"""Every field of the spec declares what changing it does to what runs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import get_args

import pytest
from msgspec import inspect

import gcluster.schemas.spec as spec_package
from gcluster.lifecycle.planning.spec_fields import policy_of
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.spec.model import SpecModel, UpdatePolicy
from gcluster.schemas.spec.units import Quantity


def _nouns(base: type[SpecModel] = SpecModel) -> Iterator[type[SpecModel]]:
    for noun in base.__subclasses__():
        if noun.__module__.startswith(spec_package.__name__):
            yield noun
        yield from _nouns(noun)


for _module in pkgutil.walk_packages(spec_package.__path__, f"{spec_package.__name__}."):
    importlib.import_module(_module.name)

_ALL = sorted(set(_nouns()), key=lambda noun: noun.__qualname__)


@pytest.mark.parametrize("noun", _ALL, ids=lambda noun: noun.__name__)
def test_each_field_of_a_noun_has_one_policy(noun: type[SpecModel]) -> None:
    own = {name for name in noun.__annotations__ if name in noun.__struct_fields__}
    answer = noun.__dict__.get("UPDATES", {})
    assert set(answer) == own
    assert set(answer.values()) <= set(get_args(UpdatePolicy))


def _reached(kind: inspect.Type, seen: set[type]) -> None:
    """Collect the classes that a type of the spec is made of."""
    if isinstance(kind, inspect.CustomType | inspect.StructType):
        if kind.cls in seen:
            return
        seen.add(kind.cls)
    if isinstance(kind, inspect.StructType):
        info = inspect.type_info(kind.cls)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            _reached(field.type, seen)
    for part in ("types", "item_types"):
        for inner in getattr(kind, part, ()):
            _reached(inner, seen)
    for part in ("type", "item_type", "key_type", "value_type"):
        if hasattr(kind, part):
            _reached(getattr(kind, part), seen)


def test_whatever_a_spec_is_made_of_is_a_noun_or_one_value() -> None:
    """So nothing that has fields of its own hides in a field that has a policy."""
    seen: set[type] = set()
    _reached(inspect.type_info(ClusterSpec), seen)
    assert len(seen) > 60
    assert {kind.__name__ for kind in seen if not issubclass(kind, SpecModel | Quantity)} == set()


@pytest.mark.parametrize("noun", _ALL, ids=lambda noun: noun.__name__)
def test_each_field_inherited_ones_too_is_reported_with_a_policy(noun: type[SpecModel]) -> None:
    for field in noun.__struct_fields__:
        assert policy_of(noun, field) in get_args(UpdatePolicy)


def test_the_whole_language_was_checked() -> None:
    assert len(_ALL) > 70
