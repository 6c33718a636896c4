"""The JSON Schema of catalog files, for editors; `--write` renews catalog.schema.json."""

from __future__ import annotations

import sys
from pathlib import Path

from ..structure.json_schema import Schema, print_or_write, published, schema_of, text_of
from .load import CatalogFile

SCHEMA_FILE = Path(__file__).parents[1] / "structure" / "catalog.schema.json"


def catalog_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a catalog file, descriptions for hovering included."""
    schema = schema_of(CatalogFile)
    definitions = schema["$defs"]
    for definition in definitions.values():
        for about in definition["properties"].values():
            if "description" not in about:
                about["description"] = _text_of_type(about, definitions)
    return published("catalog", "gcluster catalog", schema)


def render() -> str:
    """Return the text of catalog.schema.json."""
    return text_of(catalog_schema())


def main(arguments: list[str]) -> int:
    """Print the schema, or write it to its file with --write."""
    return print_or_write(arguments, render, SCHEMA_FILE)


def _text_of_type(about: Schema, definitions: Schema) -> str:
    """Return the description of the type that a field, or an element of it, is of."""
    options = [about, *about.get("anyOf", [])]
    options += [option["items"] for option in options if "items" in option]
    reference = next(option["$ref"] for option in options if "$ref" in option)
    text: str = definitions[reference.rsplit("/", 1)[-1]]["description"]
    return text


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
