"""Objects as YAML that people read and diff: keys in the order given, long texts as blocks."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from ..steps import Json

_WIDE = 1_000
"""Letters of a line: a rule that is broken over lines can't be searched."""


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and text of several lines as a block."""

    def ignore_aliases(self, data: Json) -> bool:  # noqa: ARG002  # as the library calls it
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(value: Json) -> str:
    """Return one document."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=_WIDE)


def documents(objects: Iterable[Json]) -> bytes:
    """Return a file of several documents, each after a line of three hyphens."""
    return "".join(f"---\n{to_yaml(one)}" for one in objects).encode()
