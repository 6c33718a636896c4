"""Every field of the spec says beside itself what changing it does to what runs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import get_args

import pytest

import gcluster.schemas.spec as spec_package
from gcluster.schemas.spec.noun import Noun, UpdatePolicy


def _nouns(base: type[Noun] = Noun) -> Iterator[type[Noun]]:
    for noun in base.__subclasses__():
        if noun.__module__.startswith(spec_package.__name__):
            yield noun
        yield from _nouns(noun)


for _module in pkgutil.walk_packages(spec_package.__path__, f"{spec_package.__name__}."):
    importlib.import_module(_module.name)

_ALL = sorted(set(_nouns()), key=lambda noun: noun.__qualname__)


@pytest.mark.parametrize("noun", _ALL, ids=lambda noun: noun.__name__)
def test_each_field_of_a_noun_has_one_policy(noun: type[Noun]) -> None:
    own = {name for name in noun.__annotations__ if name in noun.__struct_fields__}
    said = noun.__dict__.get("UPDATES", {})
    assert set(said) == own
    assert set(said.values()) <= set(get_args(UpdatePolicy))


def test_the_whole_language_was_looked_at() -> None:
    assert len(_ALL) > 70
