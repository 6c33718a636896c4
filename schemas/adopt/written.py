"""The files of an adopted cluster as YAML: spec and machine types, what is missing on top."""

from __future__ import annotations

from typing import Any

import yaml

from .draft import Adopted

_WIDTH = 100


def spec_text(adopted: Adopted, origin: str) -> str:
    """Return the spec; what is not carried over stands in comments above it."""
    lines = [f"# Adopted from {_line(origin)}."]
    if adopted.not_carried:
        lines.append("# Not carried over; look at each before the first `gcluster up`:")
        lines += [f"# - {_line(each.where)}: {_line(each.why)}" for each in adopted.not_carried]
    return "\n".join(lines) + "\n" + _yaml(adopted.spec)


def machines_text(adopted: Adopted, origin: str) -> str:
    """Return the catalog file of the machine types that gcluster doesn't know."""
    head = f"# Machine types of {_line(origin)}: what is not known is left out, and not checked.\n"
    return head + _yaml({"apiVersion": "gcluster/catalog/v1", "machines": list(adopted.machines)})


def _line(text: str) -> str:
    """Keep a text on its line of comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def _yaml(data: Any) -> str:
    text: str = yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )
    return text
