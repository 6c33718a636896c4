"""The committed JSON Schema of policies is the one of the types, and editors accept the example."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gcluster.schemas.policies.json_schema import SCHEMA_FILE, main, policies_schema, render
from gcluster.schemas.structure.compose import compose

_EXAMPLE = Path(__file__).parents[3] / "examples" / "policies" / "policies.yaml"


def test_the_committed_schema_is_not_stale() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == render()


def test_every_key_has_a_text_for_hovering() -> None:
    for definition in policies_schema()["$defs"].values():
        assert definition["description"]
        assert [
            k for k, about in definition["properties"].items() if "description" not in about
        ] == []


def test_an_editor_accepts_the_example() -> None:
    text = _EXAMPLE.read_text(encoding="utf-8")
    document = compose(text, file="policies.yaml").document
    assert document is not None
    Draft202012Validator(policies_schema()).validate(document.data)
    assert "# yaml-language-server: $schema=../../schemas/structure/policies.schema.json" in text


def test_without_write_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == render()
