"""JSON Schemas of the spec's types: the files they are published in, and what fits them."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec

from ..spec import ClusterSpec
from ..spec.model import SpecModel

__all__ = [
    "SCHEMA_FILE",
    "Fits",
    "Schema",
    "cluster_schema",
    "fitting",
    "inlined_schema",
    "main",
    "render",
    "schema_of",
]

SCHEMA_FILE = Path(__file__).with_name("cluster.schema.json")
TAGS = ("provider", "type", "framework", "source")
"""Keys that distinguish the branches of a union."""
_TAG_TEXT = "Says what kind this is; the other keys depend on it."


def cluster_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a cluster spec, descriptions for hovering included."""
    return published("cluster", "gcluster cluster spec", schema_of(ClusterSpec))


def schema_of(kind: Any) -> Schema:
    """Return the JSON Schema of a struct type; each tagged struct is in a tagged union.

    A key's description is the text below its field.
    """
    schema: Schema = msgspec.json.schema(kind, schema_hook=_quantity)
    definitions = schema["$defs"]
    for struct in _structs(kind):
        properties = definitions[struct.__name__]["properties"]
        for field in msgspec.structs.fields(struct):
            text = _text_of(struct, field.name)
            if text:
                about = properties[field.encode_name]
                about.pop("description", None)
                properties[field.encode_name] = {"description": text, **about}
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


def _structs(kind: Any) -> set[Any]:
    """Return the struct types that a type is made of, itself included."""
    found: set[Any] = set()
    waiting = [kind]
    while waiting:
        each = waiting.pop()
        waiting += get_args(each)
        if hasattr(each, "__struct_fields__") and each not in found:
            found.add(each)
            waiting += [field.type for field in msgspec.structs.fields(each)]
    return found


def _text_of(struct: Any, field: str) -> str:
    """Return the text below a field, of the first class of a type that has one; "" for none.

    The types don't hold them: each would be made at the start of every command.
    """
    kinds = [kind for kind in struct.__mro__ if issubclass(kind, SpecModel)]
    found = (_texts(kind.__module__).get((kind.__name__, field)) for kind in kinds)
    return next((text for text in found if text), "")


@lru_cache(maxsize=64)
def _texts(module: str) -> Mapping[tuple[str, str], str]:
    """Return the texts below the fields of a module's types, by type and field."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    kinds = (kind for kind in tree.body if isinstance(kind, ast.ClassDef))
    return {(kind.name, field): text for kind in kinds for field, text in _documented(kind)}


def _documented(kind: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield each field of a class that has a text, with it."""
    for field, below in pairwise(kind.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield field.target.id, " ".join(str(below.value.value).split())


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
    """Replace each reference by what it refers to; what is next to it wins."""
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    siblings = {
        key: value if key == "discriminator" else _inline(value, definitions)
        for key, value in node.items()
        if key != "$ref"
    }
    if "$ref" not in node:
        return siblings
    return {**_inline(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions), **siblings}


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


Fits: TypeAlias = Callable[[Any], bool]

_KINDS: dict[str, Fits] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in {int, float},
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "object": lambda value: type(value) is dict,
    "array": lambda value: type(value) is list,
}
_LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "exclusiveMinimum": lambda value, limit: value > limit,
    "exclusiveMaximum": lambda value, limit: value < limit,
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
    "minProperties": lambda value, limit: len(value) >= limit,
    "maxProperties": lambda value, limit: len(value) <= limit,
}


def fitting(schema: Schema) -> Fits:
    """Return the function that says whether a value fits a schema without references."""
    if "anyOf" in schema:
        branches = [fitting(branch) for branch in schema["anyOf"]]
        return lambda value: any(fits(value) for fits in branches)
    if "enum" in schema:
        options = {(type(option), option) for option in schema["enum"]}
        return lambda value: type(value) not in {dict, list} and (type(value), value) in options
    needs = [_KINDS[schema["type"]], *_limits(schema)]
    if schema["type"] == "object":
        needs.append(_entries(schema))
    elif "items" in schema:
        item = fitting(schema["items"])
        needs.append(lambda value: all(map(item, value)))
    elif "pattern" in schema:
        search = re.compile(schema["pattern"]).search
        needs.append(lambda value: search(value) is not None)
    if len(needs) == 1:
        return needs[0]
    return lambda value: all(fits(value) for fits in needs)


def _limits(schema: Schema) -> list[Fits]:
    """Return a function for each bound that the schema gives."""
    return [
        partial(_within, holds, schema[keyword])
        for keyword, holds in _LIMITS.items()
        if keyword in schema
    ]


def _within(holds: Callable[[Any, Any], bool], limit: float, value: Any) -> bool:
    return holds(value, limit)


def _entries(schema: Schema) -> Fits:
    """Return the function that looks at the entries of a mapping."""
    known = {key: fitting(value) for key, value in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    others = schema.get("additionalProperties", True)
    other: Fits = fitting(others) if isinstance(others, dict) else lambda _: others is not False
    names = schema.get("propertyNames")
    named: Fits = fitting({"type": "string", **names}) if names else lambda _: True

    def fits(value: dict[str, Any]) -> bool:
        if not required <= value.keys():
            return False
        return all(named(key) and known.get(key, other)(entry) for key, entry in value.items())

    return fits


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
