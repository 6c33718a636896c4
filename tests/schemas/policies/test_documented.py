"""docs/policies.md says what expressions see, and says it of what is really there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec

from gcluster.schemas.policies.facts import JOINED, shapes
from gcluster.schemas.policies.load import load_policies_text
from gcluster.schemas.policies.policy import Kind, Policy

_PAGE = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")


def _first_cells(header: str) -> list[str]:
    """Return the code in the first column of the table with this header."""
    table = _PAGE.split(f"| {header} |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_every_kind_is_listed_with_the_variables_it_has() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (`cluster`, `cost`.*) \|$", _PAGE, re.MULTILINE))
    assert {kind: set(re.findall(r"`(\w+)`", seen)) for kind, seen in rows.items()} == {
        kind: set(shapes(kind)) for kind in get_args(Kind)
    }


def test_every_field_that_the_spec_has_not_is_listed_and_every_listed_field_is_there() -> None:
    listed = _first_cells("field | what it is")
    joined = {f"{kind}.{field}" for kind, fields in JOINED.items() for field in fields}
    assert joined <= set(listed)
    for field in listed:
        names = field.split(".")
        start = "pool" if len(names) == 1 else names[0]
        shape = shapes("cluster" if start == "cost" else start)[start]
        for name in names[len(names) > 1 :]:
            inner = shape.field(name)
            assert inner is not None, field
            shape = inner


def test_every_key_of_a_policy_is_listed() -> None:
    keys = {field.encode_name for field in msgspec.structs.fields(Policy)}
    assert set(_first_cells("key |")) == keys


def test_the_page_s_example_is_right() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)
    loaded = load_policies_text(text, file="policies.yaml")
    assert loaded.diagnostics == ()
    assert len(loaded.policies) == 1
