"""The committed JSON Schema is the one of the types."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gcluster.schemas.structure.compose import compose
from gcluster.schemas.structure.json_schema import SCHEMA_FILE, cluster_schema, main, render

_EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.yaml"))


def test_the_committed_schema_is_not_stale() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == render()


def test_the_schema_is_valid_and_reports_what_it_is() -> None:
    schema = cluster_schema()
    Draft202012Validator.check_schema(schema)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].startswith("urn:gcluster:")


def test_every_key_has_a_text_for_hovering() -> None:
    for name, definition in cluster_schema()["$defs"].items():
        assert definition["description"], name
        for key, about in definition["properties"].items():
            is_tag = key in {"provider", "type", "framework"} and "enum" in about
            assert about.get("description") or is_tag, f"{name}.{key}"


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.name)
def test_an_editor_accepts_every_example(path: Path) -> None:
    document = compose(path.read_text(encoding="utf-8"), file=path.name).document
    assert document is not None

    Draft202012Validator(cluster_schema()).validate(document.data)


def test_without_write_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == render()
