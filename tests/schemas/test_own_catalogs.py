"""Catalog files that a spec names: they add, override, and are reported when they are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import gcluster.schemas.catalog
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.catalog.json_schema import SCHEMA_FILE, catalog_schema, main, render
from gcluster.schemas.load import load
from gcluster.schemas.structure.compose import compose

_ROOT = Path(__file__).parent.parent.parent
_OWN = sorted(Path(str(gcluster.schemas.catalog.__file__)).parent.glob("*/**/*.yaml"))
_SPEC = """\
apiVersion: gcluster/v1
name: campus
catalog: [machines.yaml]
sites: {hall: {provider: simulated}}
pools:
  head: {site: hall, role: controller}
  train: {site: hall, machine: MACHINE, count: 2}
scheduler: {type: slurm}
"""
_MACHINES = """\
apiVersion: gcluster/catalog/v1
machines:
  - name: NAME
    sites: [simulated]
    gpu: {vendor: nvidia, model: H100, memory_gib: 80, count: 4}
    cpu: {architecture: x86_64, vcpus: 64}
    memory_gib: 1024
    prices: [{usd_per_hour: 7, source: internal rate, date: 2026-10}]
    source: purchase order
    date: 2026-10
"""


def _spec(folder: Path, machine: str, catalog: str | None) -> Path:
    if catalog is not None:
        (folder / "machines.yaml").write_text(catalog, encoding="utf-8")
    path = folder / "cluster.yaml"
    path.write_text(_SPEC.replace("MACHINE", machine), encoding="utf-8")
    return path


def test_a_machine_of_ones_own_is_taken_from_the_file_next_to_the_spec(tmp_path: Path) -> None:
    loaded = load(_spec(tmp_path, "ours", _MACHINES.replace("NAME", "ours")))

    assert loaded.diagnostics == ()
    assert loaded.spec is not None
    assert loaded.catalogs == (tmp_path / "machines.yaml",)


def test_an_entry_with_the_name_of_gcluster_s_own_is_in_its_place(tmp_path: Path) -> None:

    loaded = load(_spec(tmp_path, "hgx-h100-8", _MACHINES.replace("NAME", "hgx-h100-8")))
    catalog = load_catalog(loaded.catalogs)

    assert loaded.spec is not None
    assert catalog.machines["hgx-h100-8"].nvlink is None
    assert catalog.machines["hgx-h100-8"].prices[0].usd_per_hour == 7


def test_without_the_file_the_same_machine_is_unknown(tmp_path: Path) -> None:
    path = _spec(tmp_path, "ours", None)
    path.write_text(path.read_text().replace("catalog: [machines.yaml]\n", ""))
    (found,) = load(path).diagnostics
    assert '"ours"' in found.summary


def test_a_wrong_file_is_located_in_itself_and_only_once(tmp_path: Path) -> None:
    wrong = _MACHINES.replace("NAME", "ours").replace("memory_gib: 1024", "memory: 1024")
    (found,) = load(_spec(tmp_path, "ours", wrong)).diagnostics

    assert found.file == str(tmp_path / "machines.yaml")
    assert found.span is not None
    assert (found.span.line, found.span.column) == (7, 5)
    assert "memory" in found.summary


def test_every_wrong_file_is_reported_and_a_good_one_still_counts(tmp_path: Path) -> None:
    path = _spec(tmp_path, "ours", _MACHINES.replace("NAME", "ours"))
    (tmp_path / "bad.yaml").write_text("apiVersion: gcluster/catalog/v1\nmachine: []\n")
    path.write_text(
        path.read_text().replace("[machines.yaml]", "[bad.yaml, machines.yaml, no.yaml]")
    )

    answer = {Path(found.file).name: found.summary for found in load(path).diagnostics}
    assert set(answer) == {"bad.yaml", "no.yaml"}
    assert "machine" in answer["bad.yaml"]
    assert "does not exist" in answer["no.yaml"]


def test_a_file_that_is_not_there_is_named_and_the_machine_is_not_called_unknown(
    tmp_path: Path,
) -> None:
    (found,) = load(_spec(tmp_path, "ours", None)).diagnostics
    assert found.file == str(tmp_path / "machines.yaml")
    assert "does not exist" in found.summary


def test_the_example_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (_ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", page, re.DOTALL))
    for name, text in blocks.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert set(blocks) == {"machines.yaml", "cluster.yaml"}
    assert load(tmp_path / "cluster.yaml").diagnostics == ()


def test_the_committed_schema_is_not_stale() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == render()


def test_every_key_has_a_text_for_hovering() -> None:
    schema = catalog_schema()
    Draft202012Validator.check_schema(schema)
    for name, definition in schema["$defs"].items():
        assert definition["description"], name
        for key, about in definition["properties"].items():
            assert about["description"], f"{name}.{key}"


@pytest.mark.parametrize("path", _OWN, ids=lambda path: path.stem)
def test_an_editor_accepts_every_file_of_the_catalog(path: Path) -> None:
    document = compose(path.read_text(encoding="utf-8"), file=path.name).document
    assert document is not None
    Draft202012Validator(catalog_schema()).validate(document.data)


def test_an_editor_refuses_what_the_loader_refuses() -> None:
    text = _MACHINES.replace("NAME", "ours").replace("count: 4", "count: 0")
    document = compose(text, file="machines.yaml").document
    assert document is not None
    assert not Draft202012Validator(catalog_schema()).is_valid(document.data)


def test_without_write_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == render()


def test_a_machine_without_an_architecture_is_an_error_at_its_place(tmp_path: Path) -> None:
    """It was taken for x86, and ARM machines got images and packages that don't start."""
    text = _MACHINES.replace("NAME", "ours").replace(
        "    cpu: {architecture: x86_64, vcpus: 64}\n", ""
    )
    [found] = load(_spec(tmp_path, "ours", text)).diagnostics

    assert found.is_error
    assert (found.file, found.span and found.span.line) == (str(tmp_path / "machines.yaml"), 3)
    assert "cpu" in found.summary
