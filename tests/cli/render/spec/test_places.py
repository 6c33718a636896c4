"""How files are named to CI servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.cli.render.spec.ci import relative, shown, uri


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start in a folder of our own."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("file", ["specs/a.yaml", "./specs/a.yaml", "specs/../specs//a.yaml"])
def test_a_path_below_is_relative_and_plain(here: Path, file: str) -> None:
    assert (relative(file), shown(file), uri(file)) == (
        "specs/a.yaml", "specs/a.yaml", ("specs/a.yaml", True),
    )  # fmt: skip
    assert relative(str(here / file)) == "specs/a.yaml"


def test_a_path_elsewhere_is_whole(here: Path) -> None:
    beside = here.parent / "other.yaml"
    assert relative("../other.yaml") is None
    assert shown("../other.yaml") == str(beside)
    assert uri("../other.yaml") == (f"file://{beside}", False)


def test_a_name_that_only_resembles_the_folder_above_is_below(here: Path) -> None:
    del here
    assert relative("..a.yaml") == "..a.yaml"


def test_a_uri_holds_any_file_name(here: Path) -> None:
    del here
    assert uri("ü #1?.yaml") == ("%C3%BC%20%231%3F.yaml", True)
    assert uri("a\udcff.yaml") == ("a%FF.yaml", True)
    assert uri("<stdin>") == ("%3Cstdin%3E", True)
