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
from gcluster.schemas.load import API_VERSION, load_text
from gcluster.schemas.mend.fixes import fixed_text
from gcluster.schemas.migrate import STEPS, Move, Rename, Reword, Step, modernise
from gcluster.schemas.migrate.rewriting import migration
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.text.compose import compose
from gcluster.schemas.text.document import Document

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


def _step(change: Rename | Move | Reword, only: tuple[str, str] | None = None) -> Step:
    return Step(api_version="v", change=change, only=only, because="it is clearer")


def _document(text: str) -> Document:
    document = compose(text, file="t").document
    assert document is not None
    return document


def _modern(text: str, *steps: Step) -> tuple[Any, tuple[Diagnostic, ...], str]:
    """Return the modernised data, the warnings, and the text after their patches."""
    document = _document(text)
    found = modernise(document, file="t", steps=steps)
    return document.data, found, fixed_text(text, found).text


def test_an_older_spelling_loads_with_a_warning_and_means_the_same() -> None:
    old, new = load_text(_OLD), load_text(_OLD.replace("capacity", "max_nodes"))

    assert old.spec is not None
    assert old.spec == new.spec
    assert [(d.code, d.severity) for d in old.diagnostics] == [("GC025", Severity.WARNING)]
    assert old.diagnostics[0].path == ("sites", "lab", "capacity")
    assert new.diagnostics == ()


def test_its_patch_renames_the_key_and_nothing_else() -> None:
    mended = fixed_text(_OLD, load_text(_OLD).diagnostics).text
    assert mended == _OLD.replace("capacity", "max_nodes")


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


def test_steps_are_about_versions_and_places_that_exist() -> None:
    for step in STEPS:
        assert step.api_version == API_VERSION
        assert step.change.at[0] in {
            field.replace("api_version", "apiVersion") for field in (ClusterSpec.__struct_fields__)
        }


def test_a_word_is_reworded_wherever_the_pattern_reaches() -> None:
    step = _step(Reword(at=("pools", "*", "market", "*"), word="spot", to="preemptible"))
    text = "apiVersion: v\npools:\n  a: {market: [spot, new]}\n  b:\n    market: ['spot'] # c\n"
    data, found, mended = _modern(text, step)

    assert data["pools"]["a"]["market"] == ["preemptible", "new"]
    assert [d.path for d in found] == [("pools", p, "market", 0) for p in "ab"]
    assert mended == text.replace("spot", "preemptible")


def test_a_key_moves_deeper_into_a_mapping_that_is_there_or_is_made() -> None:
    step = _step(Move(at=("sites", "*"), key="cidr", to=("network", "cidr")))
    text = (
        "apiVersion: v\nsites:\n  a: {cidr: 10.0.0.0/8, x: 1}\n"
        "  b:\n    cidr: 10.1.0.0/16 # ours\n    network:\n      mtu: 9000\n    x: 1\n"
    )
    data, found, mended = _modern(text, step)

    assert data["sites"]["a"] == {"x": 1, "network": {"cidr": "10.0.0.0/8"}}
    assert data["sites"]["b"]["network"] == {"mtu": 9000, "cidr": "10.1.0.0/16"}
    assert found[0].summary == '"cidr" in sites.a now stands in network: it is clearer'
    assert mended == (
        "apiVersion: v\nsites:\n  a: {network: {cidr: 10.0.0.0/8}, x: 1}\n"
        "  b:\n    network:\n      mtu: 9000\n      cidr: 10.1.0.0/16\n    x: 1\n"
    )


def test_a_value_of_several_lines_is_moved_in_memory_and_left_to_a_person_in_the_file() -> None:
    step = _step(Move(at=("a",), key="b", to=("c", "b")))
    text = "apiVersion: v\na:\n  b:\n    - 1\n    - 2\n  d: 1\n"
    data, found, mended = _modern(text, step)

    assert data["a"] == {"d": 1, "c": {"b": [1, 2]}}
    assert found[0].patch is None
    assert mended == text


def test_a_value_with_an_anchor_is_moved_in_memory_only() -> None:
    step = _step(Move(at=("a",), key="b", to=("c", "b")))
    data, found, _ = _modern("apiVersion: v\na: {b: &x 1}\nz: *x\n", step)
    assert data["a"] == {"c": {"b": 1}}
    assert found[0].patch is None


def test_what_moved_is_found_at_its_place_in_the_text() -> None:
    document = _document("apiVersion: v\na: {b: 1}\n")
    before = document.locate(("a", "b"))
    modernise(document, file="t", steps=[_step(Move(at=("a",), key="b", to=("c", "d")))])
    assert document.locate(("a", "c", "d")) == before


def test_both_spellings_together_are_left_to_the_checks_of_structure() -> None:
    step = _step(Rename(at=("a",), key="b", to="c"))
    assert _modern("apiVersion: v\na: {b: 1, c: 2}\n", step)[1] == ()
    step = _step(Move(at=("a",), key="b", to=("c", "d")))
    assert _modern("apiVersion: v\na: {b: 1, c: 2}\n", step)[1] == ()
    assert _modern("apiVersion: v\na: {b: 1, c: {d: 2}}\n", step)[1] == ()


def test_a_step_is_for_its_version_and_its_kind_alone() -> None:
    step = _step(Rename(at=("a", "*"), key="b", to="c"), only=("kind", "x"))
    assert _modern("apiVersion: w\na: {p: {kind: x, b: 1}}\n", step)[1] == ()
    assert _modern("apiVersion: v\na: {p: {kind: y, b: 1}}\n", step)[1] == ()
    assert len(_modern("apiVersion: v\na: {p: {kind: x, b: 1}}\n", step)[1]) == 1


def test_a_mapping_that_is_shared_by_an_alias_is_changed_once_at_its_anchor() -> None:
    step = _step(Rename(at=("a", "*"), key="b", to="c"))
    text = "apiVersion: v\na:\n  p: &x {b: 1}\n  q: *x\n"
    data, found, mended = _modern(text, step)

    assert data["a"] == {"p": {"c": 1}, "q": {"c": 1}}
    assert [d.path for d in found] == [("a", "p", "b")]
    assert mended == text.replace("b: 1", "c: 1")


def test_steps_follow_each_other() -> None:
    first = _step(Rename(at=("a",), key="b", to="c"))
    second = _step(Rename(at=("a",), key="c", to="d"))
    data, found, _ = _modern("apiVersion: v\na: {b: 1}\n", first, second)
    assert data["a"] == {"d": 1}
    assert len(found) == 2


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_the_rewritten_text_means_what_the_older_one_is_read_as(chance: random.Random) -> None:
    changes = [
        Rename(at=chance.choice([(), ("*",), ("count",)]), key="site", to="new"),
        Move(at=(), key="site", to=("machine", "site")),
        Move(at=("*",), key="count", to=("inner", "count")),
        Reword(at=("*", "*"), word="spill", to="burst"),
    ]
    value = {"apiVersion": "v", **written_yaml.data(chance)}
    text = written_yaml.written(value, chance)
    data, found, mended = _modern(text, _step(chance.choice(changes)))

    if all(warning.patch for warning in found):
        assert _document(mended).data == data


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
