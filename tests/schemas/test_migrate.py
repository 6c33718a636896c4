"""Older spellings: read as they were, told once with their place, rewritten with comments kept."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schemas import written_yaml

from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.schemas.fix.apply import fixed_text
from gcluster.schemas.fix.migration import migration
from gcluster.schemas.fix.upgrade import RENAMES, Rename, upgrade
from gcluster.schemas.load import API_VERSION, load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.structure.compose import compose
from gcluster.schemas.structure.document import Document

_OLD = """\
apiVersion: gcluster/v1
name: demo
sites:
  lab: # the only one
    provider: simulated
    capacity: 8 # nodes
pools:
  head: {site: lab, role: controller}
  gpu: {site: lab, machine: sim.h100x8, count: 4}
scheduler: {type: slurm}
"""


def _rename(at: tuple[str, ...], key: str, to: str, only: tuple[str, str] | None = None) -> Rename:
    return Rename(api_version="v", at=at, key=key, to=to, only=only, because="it is clearer")


def _document(text: str) -> Document:
    document = compose(text, file="t").document
    assert document is not None
    return document


def _modern(text: str, *renames: Rename) -> tuple[Any, tuple[Diagnostic, ...], str]:
    """Return the upgraded data, the warnings, and the text after their patches."""
    document = _document(text)
    found = upgrade(document, file="t", renames=renames)
    return document.data, found, fixed_text(text, found).text


def test_an_older_spelling_loads_with_a_warning_and_means_the_same() -> None:
    old, new = load_text(_OLD), load_text(_OLD.replace("capacity", "max_nodes"))

    assert old.spec is not None
    assert old.spec == new.spec
    assert [(d.code, d.severity) for d in old.diagnostics] == [("GC025", Severity.WARNING)]
    assert old.diagnostics[0].path == ("sites", "lab", "capacity")
    assert new.diagnostics == ()


def test_its_patch_renames_the_key_and_nothing_else() -> None:
    fixed = fixed_text(_OLD, load_text(_OLD).diagnostics).text
    assert fixed == _OLD.replace("capacity", "max_nodes")


def test_a_mistake_in_an_older_spelling_is_told_where_it_stands() -> None:
    found = load_text(_OLD.replace("capacity: 8", "capacity: -8")).diagnostics
    assert [d.code for d in found] == ["GC025", "GC005"]
    assert found[1].span is not None
    assert (found[1].span.line, found[1].span.column) == (6, 15)


def test_a_mistake_elsewhere_does_not_hide_an_older_spelling() -> None:
    found = load_text(_OLD.replace("count: 4", "cuont: 4")).diagnostics
    assert [d.code for d in found] == ["GC025", "GC001"]


def test_a_key_that_could_not_be_read_is_told_once() -> None:
    found = load_text(_OLD.replace("capacity: 8", "capacity: !x 8")).diagnostics
    assert [d.code for d in found] == ["GC013"]


@pytest.mark.parametrize("version", ["gcluster/v2", "gcluster/v17"])
def test_a_spec_for_a_newer_gcluster_gets_one_error(version: str) -> None:
    text = _OLD.replace("gcluster/v1", version).replace("scheduler", "schedulers")
    loaded = load_text(text)
    assert [d.code for d in loaded.diagnostics] == ["GC026"]
    assert loaded.spec is None
    assert loaded.text == text


@pytest.mark.parametrize("version", ["v1", "gcluster", "gcluster/v0", "gcluster/v01", "1", "[]"])
def test_a_version_that_never_was_is_told_with_the_right_one(version: str) -> None:
    found = load_text(_OLD.replace("gcluster/v1", version)).diagnostics
    assert any(d.path == ("apiVersion",) and API_VERSION in d.summary for d in found)
    assert all(d.code != "GC026" for d in found)


def test_renames_are_about_versions_and_places_that_exist() -> None:
    for rename in RENAMES:
        assert rename.api_version == API_VERSION
        assert rename.at[0] in {
            field.replace("api_version", "apiVersion") for field in (ClusterSpec.__struct_fields__)
        }


def test_what_was_renamed_is_found_at_its_place_in_the_text() -> None:
    document = _document("apiVersion: v\na: {b: 1}\n")
    before = document.locate(("a", "b"))
    upgrade(document, file="t", renames=[_rename(("a",), "b", "c")])
    assert document.locate(("a", "c")) == before


def test_both_spellings_together_are_left_to_the_checks_of_structure() -> None:
    step = _rename(("a",), "b", "c")
    assert _modern("apiVersion: v\na: {b: 1, c: 2}\n", step)[1] == ()


def test_a_rename_is_for_its_version_and_its_kind_alone() -> None:
    step = _rename(("a", "*"), "b", "c", only=("kind", "x"))
    assert _modern("apiVersion: w\na: {p: {kind: x, b: 1}}\n", step)[1] == ()
    assert _modern("apiVersion: v\na: {p: {kind: y, b: 1}}\n", step)[1] == ()
    assert len(_modern("apiVersion: v\na: {p: {kind: x, b: 1}}\n", step)[1]) == 1


def test_a_mapping_that_is_shared_by_an_alias_is_changed_once_at_its_anchor() -> None:
    step = _rename(("a", "*"), "b", "c")
    text = "apiVersion: v\na:\n  p: &x {b: 1}\n  q: *x\n"
    data, found, fixed = _modern(text, step)

    assert data["a"] == {"p": {"c": 1}, "q": {"c": 1}}
    assert [d.path for d in found] == [("a", "p", "b")]
    assert fixed == text.replace("b: 1", "c: 1")


def test_renames_follow_each_other() -> None:
    first = _rename(("a",), "b", "c")
    second = _rename(("a",), "c", "d")
    data, found, _ = _modern("apiVersion: v\na: {b: 1}\n", first, second)
    assert data["a"] == {"d": 1}
    assert len(found) == 2


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_the_rewritten_text_means_what_the_older_one_is_read_as(chance: random.Random) -> None:
    rename = _rename(chance.choice([(), ("*",), ("count",)]), "site", "new")
    value = {"apiVersion": "v", **written_yaml.data(chance)}
    text = written_yaml.written(value, chance)
    data, found, fixed = _modern(text, rename)

    if all(warning.patch for warning in found):
        assert _document(fixed).data == data


def test_a_file_of_today_has_nothing_to_migrate(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(_OLD.replace("capacity", "max_nodes"), encoding="utf-8")
    done = migration(path)
    assert (done.changes, done.left, done.unreadable) == ((), (), ())
    assert done.after == done.before


def test_a_file_with_other_mistakes_is_migrated_and_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(_OLD.replace("count: 4", "cuont: 4"), encoding="utf-8")
    done = migration(path)
    assert len(done.changes) == 1
    assert "max_nodes: 8 # nodes" in done.after
    assert "cuont: 4" in done.after
