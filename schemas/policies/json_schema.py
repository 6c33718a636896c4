"""The JSON Schema of policies files, for editors; `--write` renews policies.schema.json."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from gcluster.schemas.json_schema import Schema, schema_of
from gcluster.schemas.policies.policy import PolicyFile

SCHEMA_FILE = Path(__file__).parent.with_name("policies.schema.json")


def policies_schema() -> Schema:
    """Return the JSON Schema (2020-12) of a policies file, descriptions for hovering included."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gcluster:schema:policies:v1",
        "title": "gcluster policies",
        **schema_of(PolicyFile),
    }


def render() -> str:
    """Return the text of policies.schema.json."""
    return msgspec.json.format(msgspec.json.encode(policies_schema()), indent=2).decode() + "\n"


def main(arguments: list[str]) -> int:
    """Print the schema, or write it to its file with --write."""
    if arguments == ["--write"]:
        SCHEMA_FILE.write_text(render(), encoding="utf-8")
    else:
        sys.stdout.write(render())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
