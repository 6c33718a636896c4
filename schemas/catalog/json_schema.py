"""The JSON Schema of catalog files, for editors; `--write` renews catalog.schema.json."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

from ..structure.json_schema import Schema, print_or_write, published, schema_of, text_of
from . import load
from .load import CatalogFile
from .model import fabric, family, machine, provider, source
from .model import machine as citation
from .model import source as addon

SCHEMA_FILE = Path(__file__).parents[1] / "structure" / "catalog.schema.json"
_MODULES = (addon, citation, fabric, family, load, machine, provider, source)


def catalog_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a catalog file, descriptions for hovering included."""
    schema = schema_of(CatalogFile)
    texts, definitions = _field_texts(), schema["$defs"]
    for name, definition in definitions.items():
        for key, about in definition["properties"].items():
            text = texts.get((name, key)) or texts.get(("Citation", key))
            if "description" not in about:
                about["description"] = text or _text_of_type(about, definitions)
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


def _field_texts() -> dict[tuple[str, str], str]:
    """Return the text below each field of the catalog's types, by type and field."""
    return {
        (kind.name, field.target.id): " ".join(str(text.value.value).split())
        for module in _MODULES
        for kind in ast.parse(inspect.getsource(module)).body
        if isinstance(kind, ast.ClassDef)
        for field, text in zip(kind.body, kind.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
