"""The reference of the spec language: what the types say, and an example of each section."""

from __future__ import annotations

from pathlib import Path

from gcluster.schemas.structure.json_schema import cluster_schema
from gcluster.schemas.structure.reference import SHOWN, reference

_ROOT = Path(__file__).parents[2]
_EXAMPLES = {
    path.stem: path.read_text(encoding="utf-8") for path in (_ROOT / "examples").glob("*.yaml")
}


def test_the_pages_are_up_to_date() -> None:
    written = {p.name: p.read_text(encoding="utf-8") for p in (_ROOT / "docs").glob("spec*.md")}

    assert written == reference(_EXAMPLES), "run: make docs"


def test_every_section_shows_an_example() -> None:
    definitions = cluster_schema()["$defs"]
    sections = {key for key, value in definitions["ClusterSpec"]["properties"].items() if value}

    assert sections - set(SHOWN) == {"apiVersion", "name", "owner", "catalog"}
    pages = "\n" + "\n".join(reference(_EXAMPLES).values())
    for key, names in SHOWN.items():
        assert names
        assert f"\n## `{key}`\n" in pages or f"\n# `{key}`\n" in pages


def test_every_noun_has_a_table_with_all_its_keys() -> None:
    page = "\n".join(reference(_EXAMPLES).values())
    for name, definition in cluster_schema()["$defs"].items():
        if name == "ClusterSpec":
            continue
        tagged, _, after = page.partition(f"\n### {name}:")
        if tagged == page:
            after = page.partition(f"\n### {name}\n")[2]
        table = after.partition("\n### ")[0].partition("\n# ")[0]
        assert table, name
        for key in definition.get("properties", {}):
            assert f"`{key}`" in table, (name, key)
