"""The JSON Schema of policies files, for editors; `--write` renews policies.schema.json."""

from __future__ import annotations

import sys
from pathlib import Path

from ..structure.json_schema import Schema, print_or_write, published, schema_of, text_of
from .policy import PolicyFile

SCHEMA_FILE = Path(__file__).parents[1] / "structure" / "policies.schema.json"


def policies_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a policies file, descriptions for hovering included."""
    return published("policies", "gcluster policies", schema_of(PolicyFile))


def render() -> str:
    """Return the text of policies.schema.json."""
    return text_of(policies_schema())


def main(arguments: list[str]) -> int:
    """Print the schema, or write it to its file with --write."""
    return print_or_write(arguments, render, SCHEMA_FILE)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
