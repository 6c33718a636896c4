"""JSON Schemas of the spec's types, and the files they are published in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ..spec import ClusterSpec

__all__ = [
    "SCHEMA_FILE",
    "Schema",
    "cluster_schema",
    "inlined_schema",
    "main",
    "render",
    "schema_of",
]

SCHEMA_FILE = Path(__file__).with_name("cluster.schema.json")
TAGS = ("provider", "type", "source")
"""Keys that tell the branches of a union apart."""
_TAG_TEXT = "Says what kind this is; the other keys depend on it."


def cluster_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a cluster spec, descriptions for hovering included."""
    return published("cluster", "gcluster cluster spec", schema_of(ClusterSpec))


def schema_of(kind: Any) -> Schema:
    """Return the JSON Schema of a struct type; each tagged struct stands in a tagged union."""
    schema: Schema = msgspec.json.schema(kind, schema_hook=_quantity)
    definitions = schema["$defs"]
    for definition in definitions.values():
        tag = _tag_of(definition)
        if tag is not None:
            definition["properties"][tag[0]]["description"] = _TAG_TEXT
    tagged: Schema = _with_unions(schema, definitions)
    return tagged


@lru_cache(maxsize=8)
def inlined_schema(kind: Any) -> Schema:
    """Return the schema of a type without references (the spec's types do not recurse)."""
    schema = schema_of(kind)
    inlined: Schema = _inline({"$ref": schema["$ref"]}, schema["$defs"])
    return inlined


def render() -> str:
    """Return the text of cluster.schema.json."""
    return text_of(cluster_schema())


def _quantity(kind: Any) -> Schema:
    """Give msgspec the schema of a Quantity."""
    if not hasattr(kind, "json_schema"):
        raise NotImplementedError(kind)
    schema: Schema = kind.json_schema()
    return schema


def _tag_of(definition: Schema) -> tuple[str, str] | None:
    """Return the tag key and value of a definition that carries one."""
    for key in TAGS:
        values = definition.get("properties", {}).get(key, {}).get("enum", ())
        if len(values) == 1 and key in definition.get("required", ()):
            return key, values[0]
    return None


def _with_unions(node: Any, definitions: Schema) -> Any:
    """Wrap each lone reference to a tagged struct in a union of one with its discriminator."""
    if isinstance(node, list):
        return [_with_unions(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    tag = _tag_of(definitions[reference.rsplit("/", 1)[-1]]) if reference else None
    if tag is not None:
        return {
            **{key: value for key, value in node.items() if key != "$ref"},
            "anyOf": [{"$ref": reference}],
            "discriminator": {"propertyName": tag[0], "mapping": {tag[1]: reference}},
        }
    return {
        key: value
        if "discriminator" in node and key == "anyOf"
        else _with_unions(value, definitions)
        for key, value in node.items()
    }


def _inline(node: Any, definitions: Schema) -> Any:
    """Replace each reference by what it refers to; what stands beside it wins."""
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    beside = {
        key: value if key == "discriminator" else _inline(value, definitions)
        for key, value in node.items()
        if key != "$ref"
    }
    if "$ref" not in node:
        return beside
    return {**_inline(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions), **beside}


def main(arguments: list[str]) -> int:
    """Print the schema, or write it to its file with --write."""
    return print_or_write(arguments, render, SCHEMA_FILE)


Schema: TypeAlias = dict[str, Any]


def published(name: str, title: str, schema: Schema) -> Schema:
    """Return a schema with the head of JSON Schema 2020-12 and the id of its version 1."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:gcluster:schema:{name}:v1",
        "title": title,
        **schema,
    }


def text_of(schema: Schema) -> str:
    """Return the text of a schema file."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def print_or_write(arguments: list[str], render: Callable[[], str], file: Path) -> int:
    """Print a schema, or write it to its file with --write."""
    if arguments == ["--write"]:
        file.write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
