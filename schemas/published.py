"""JSON Schemas as they are published for editors: named, and the same bytes each time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

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
