"""The fast answer whether a value fits is the one that jsonschema gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import extend
from tests.schemas.schema_values import values

from gcluster.schemas.catalog import CatalogFile
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.structure.json_schema import fitting, inlined_schema

_CHECKER = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, v: type(v) is int)
_ORACLE = extend(Draft202012Validator, type_checker=_CHECKER)
_SLOW = settings(
    max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70_000) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def _damaged(value: Any, chance: Any, other: Any) -> Any:
    """Return the value with one thing in it, at any depth, replaced, added or taken away."""
    if isinstance(value, dict) and value and chance.random() < 0.8:  # mostly deeper
        key = chance.choice(sorted(value))
        changed = dict(value)
        if chance.random() < 0.2:  # now and then
            del changed[key]
        else:
            changed[key] = _damaged(value[key], chance, other)
        return changed
    if isinstance(value, list) and value and chance.random() < 0.8:  # as above
        place = chance.randrange(len(value))
        return [*value[:place], _damaged(value[place], chance, other), *value[place + 1 :]]
    return other


_KINDS = {
    kind: (values(schema), fitting(schema), _ORACLE(schema))
    for kind, schema in ((each, inlined_schema(each)) for each in (ClusterSpec, CatalogFile))
}


@pytest.mark.parametrize("kind", _KINDS)
@_SLOW
@given(st.data())
def test_what_the_schema_accepts_fits(kind: type, data: st.DataObject) -> None:
    accepted, fits, _ = _KINDS[kind]

    assert fits(data.draw(accepted))


@pytest.mark.parametrize("kind", _KINDS)
@_SLOW
@given(st.data(), st.randoms(use_true_random=False))
def test_a_damaged_value_fits_when_jsonschema_accepts_it(
    kind: type, data: st.DataObject, chance: Any
) -> None:
    accepted, fits, oracle = _KINDS[kind]
    value = _damaged(data.draw(accepted), chance, data.draw(_ANYTHING))

    assert fits(value) == oracle.is_valid(value)


@given(_ANYTHING)
def test_anything_fits_when_jsonschema_accepts_it(value: Any) -> None:
    _, fits, oracle = _KINDS[ClusterSpec]

    assert fits(value) == oracle.is_valid(value)
