"""Every example works: it validates without a finding and compiles, twice the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.compile_tree import compiled_files
from gcluster.schemas.load import load

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_has_no_finding(example: Path) -> None:
    loaded = load(example)
    assert [d.summary for d in loaded.diagnostics] == []
    assert loaded.spec is not None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_compiles_to_the_same_bytes_twice(example: Path) -> None:
    loaded = load(example)
    assert loaded.spec is not None
    first = compiled_files(loaded.spec)
    assert first
    assert compiled_files(loaded.spec) == first


def test_every_example_points_editors_to_the_schema() -> None:
    line = "# yaml-language-server: $schema=../schemas/cluster.schema.json"
    assert [e.name for e in EXAMPLES if line not in e.read_text(encoding="utf-8")] == []
