"""`gcluster schema` prints what the repository publishes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_the_schema_printed_is_the_schema_published(run: Callable[..., Any], root: Path) -> None:
    published = (root / "schemas/cluster.schema.json").read_text(encoding="utf-8")
    assert run("schema").stdout == published
