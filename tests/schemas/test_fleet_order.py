"""fleet.yaml says the order of clusters, and which may go; every mistake has its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.fleet.folder import load_folder
from gcluster.schemas.fleet.ordering import NONE, load_fleet

HEAD = "apiVersion: gcluster/fleet/v1\n"
CLUSTERS = ("dev", "east", "west", "prod")


def test_clusters_come_step_by_step_and_the_unnamed_ones_last() -> None:
    text = f"{HEAD}order: [dev, [west, east]]\n"
    loaded = load_fleet(text.encode(), file="fleet.yaml", clusters=CLUSTERS)
    assert loaded.diagnostics == ()
    assert loaded.fleet is not None
    assert loaded.fleet.steps(CLUSTERS) == (("dev",), ("east", "west"), ("prod",))


def test_without_a_file_all_are_one_step_by_name() -> None:
    assert NONE.steps(["b", "a"]) == (("a", "b"),)


@pytest.mark.parametrize(
    ("text", "code", "line", "word"),
    [
        ("order: [dve]\n", "GC1133", 2, 'did you mean "dev"'),
        ("order: [dev, [east, dev]]\n", "GC1133", 2, "twice"),
        ("order:\n- dev\nremove:\n- prod\n", "GC1133", 5, "has a spec"),
        ("ordr: [dev]\n", "GC001", 2, "order"),
    ],
)
def test_a_mistake_is_reported_at_its_place(text: str, code: str, line: int, word: str) -> None:
    loaded = load_fleet(f"{HEAD}{text}".encode(), file="fleet.yaml", clusters=CLUSTERS)
    (found,) = loaded.diagnostics
    assert loaded.fleet is None
    assert (found.code, found.span.line if found.span else 0) == (code, line)
    assert word in f"{found.summary} {found.hint}"


@pytest.mark.parametrize("content", [b"", b"- a\n", b"\xff", b"a: [\n"])
def test_what_holds_no_mapping_is_reported(content: bytes) -> None:
    loaded = load_fleet(content, file="fleet.yaml", clusters=CLUSTERS)
    assert loaded.fleet is None
    assert all(found.is_error for found in loaded.diagnostics)
    assert loaded.diagnostics


def test_the_file_is_no_spec_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(f"{HEAD}order: []\n")
    folder = load_folder(tmp_path)
    assert (folder.specs, [note.code for note in folder.notes]) == ((), ["GC855"])
