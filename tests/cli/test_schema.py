"""`gcluster schema` prints what the repository publishes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("kind", ["cluster", "catalog", "policies"])
def test_the_schema_printed_is_the_schema_published(
    run: Callable[..., Any], root: Path, kind: str
) -> None:
    published = (root / f"schemas/structure/{kind}.schema.json").read_text(encoding="utf-8")
    assert run("schema", kind).stdout == published


def test_without_a_kind_it_is_the_spec_s(run: Callable[..., Any]) -> None:
    assert run("schema").stdout == run("schema", "cluster").stdout
