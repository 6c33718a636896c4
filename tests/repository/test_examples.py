"""Every example works: it validates without a finding and compiles, twice the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.planning.compile_tree import compiled_files
from gcluster.lifecycle.planning.preflight.offline import offline_findings
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.fleet.clashes import check_fleet
from gcluster.schemas.load import load

EXAMPLES = [
    path
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
    if "apiVersion: gcluster/v1\n" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_has_no_finding(example: Path) -> None:
    loaded = load(example)
    assert [d.summary for d in loaded.diagnostics] == []
    assert loaded.spec is not None
    assert [d.summary for d in offline_findings(loaded) if d.is_error] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_compiles_to_the_same_bytes_twice(example: Path) -> None:
    loaded = load(example)
    assert loaded.spec is not None
    catalog = load_catalog(loaded.catalogs)
    first = compiled_files(loaded.spec, catalog)
    assert first
    assert compiled_files(loaded.spec, catalog) == first


def test_every_example_points_editors_to_the_schema() -> None:
    line = "# yaml-language-server: $schema=../schemas/structure/cluster.schema.json"
    assert [e.name for e in EXAMPLES if line not in e.read_text(encoding="utf-8")] == []


def test_the_examples_do_not_clash_with_each_other() -> None:
    found = check_fleet([load(example) for example in EXAMPLES])
    assert [d.summary for d in found] == []
