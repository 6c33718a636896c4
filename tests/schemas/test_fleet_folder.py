"""Folders of specs: what is taken, what is left out, and what is said about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.fleet.codes import FLEET_CODES
from gcluster.schemas.fleet.folder import Folder, load_folder

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {lab: {provider: simulated}}
pools: {head: {site: lab, role: controller}, gpu: {site: lab, machine: sim.h100x8, count: 4}}
scheduler: {type: slurm}
"""


def _put(folder: Path, *names: str, text: str = SPEC) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _specs(folder: Folder, root: Path) -> list[str]:
    return [str(Path(loaded.file).relative_to(root)) for loaded in folder.specs]


def _notes(folder: Folder, root: Path) -> list[tuple[str, str]]:
    return [(note.code, str(Path(note.file).relative_to(root))) for note in folder.notes]


def test_every_yaml_file_below_is_taken_in_the_order_of_its_path(tmp_path: Path) -> None:
    _put(tmp_path, "b.yaml", "a/z.yml", "a.yaml", "a/b/c.yaml", "notes.txt", "a.yaml.bak")
    folder = load_folder(tmp_path)
    assert _specs(folder, tmp_path) == ["a/b/c.yaml", "a/z.yml", "a.yaml", "b.yaml"]
    assert folder.notes == ()


def test_hidden_files_and_folders_are_left_out_without_output(tmp_path: Path) -> None:
    _put(tmp_path, "a.yaml", ".gcluster/demo/spec.yaml", ".ci.yaml", ".git/x.yml")
    folder = load_folder(tmp_path)
    assert (_specs(folder, tmp_path), folder.notes) == (["a.yaml"], ())


def test_policies_and_catalogs_are_left_out_without_output(tmp_path: Path) -> None:
    _put(tmp_path, "a.yaml")
    _put(tmp_path, "policies.yaml", text="apiVersion: gcluster/policies/v1\npolicies: []\n")
    _put(tmp_path, "machines.yaml", text="apiVersion: gcluster/catalog/v1\nmachines: []\n")
    folder = load_folder(tmp_path)
    assert (_specs(folder, tmp_path), folder.notes) == (["a.yaml"], ())


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Pod\n",
        "- hosts: all\n",
        "",
        "# nothing\n",
        "a: {{ templated }}\n",
        "apiVersion: v1\n---\napiVersion: v1\n",
        "apiVersion: gcluster/policies/v1\npolicies: [\n",
        "sites: [a, b]\n",
    ],
)
def test_what_is_no_spec_is_named_in_a_note(tmp_path: Path, text: str) -> None:
    _put(tmp_path, "a.yaml")
    _put(tmp_path, "other.yaml", text=text)
    folder = load_folder(tmp_path)
    assert _specs(folder, tmp_path) == ["a.yaml"]
    assert _notes(folder, tmp_path) == [("GC856", "other.yaml")]
    assert folder.notes[0].severity is Severity.NOTE


@pytest.mark.parametrize(
    "text",
    [
        SPEC.replace("gcluster/v1", "gcluster/v9"),
        SPEC.replace("apiVersion: gcluster/v1\n", ""),
        SPEC.replace("apiVersion: gcluster/v1", "apiVersoin: gcluster/v1"),
        SPEC + "]",
        "{apiVersion: gcluster/v1, name: x",
        "apiVersion: gcluster/v1\n---\napiVersion: gcluster/v1\n",
        "apiVersion: 'gcluster/v1\n",
        "sites:\n\tx\npools: {}\n",
    ],
)
def test_a_spec_with_a_mistake_is_still_a_spec(tmp_path: Path, text: str) -> None:
    _put(tmp_path, "wrong.yaml", text=text)
    folder = load_folder(tmp_path)
    assert _specs(folder, tmp_path) == ["wrong.yaml"]
    assert any(found.is_error for found in folder.specs[0].diagnostics)


def test_a_file_that_is_no_text_is_an_error_and_no_note(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\0\1\2")
    folder = load_folder(tmp_path)
    assert [found.code for found in folder.specs[0].diagnostics] == ["GC017"]


@pytest.mark.parametrize("others", [(), ("notes.txt",), (".hidden/a.yaml",)])
def test_a_folder_without_a_spec_is_an_error(tmp_path: Path, others: tuple[str, ...]) -> None:
    _put(tmp_path, *others)
    (note,) = load_folder(tmp_path).notes
    assert (note.code, note.severity, note.file) == ("GC855", Severity.ERROR, str(tmp_path))


def test_links_end_nowhere_in_a_loop_and_each_file_is_taken_once(tmp_path: Path) -> None:
    _put(tmp_path, "b.yaml")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    (tmp_path / "self.yaml").symlink_to("self.yaml")
    (tmp_path / "c.yaml").symlink_to("b.yaml")
    os.link(tmp_path / "b.yaml", tmp_path / "d.yaml")
    folder = load_folder(tmp_path)
    assert _specs(folder, tmp_path) == ["b.yaml", "self.yaml"]
    assert [found.code for found in folder.specs[1].diagnostics] == ["GC021"]


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    _put(tmp_path, ".data/demo.yaml")
    (tmp_path / "demo.yaml").symlink_to(".data/demo.yaml")
    assert _specs(load_folder(tmp_path), tmp_path) == ["demo.yaml"]


def test_what_is_neither_file_nor_folder_is_never_opened(tmp_path: Path) -> None:
    _put(tmp_path, "a.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")  # opening it would wait for ever
    assert _specs(load_folder(tmp_path), tmp_path) == ["a.yaml"]


def test_a_folder_that_can_t_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(tmp_path, "a.yaml", "shut/b.yaml")
    listed = Path.iterdir

    def iterdir(path: Path) -> object:  # a double: root may list what others may not
        if path.name == "shut":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    (note,) = load_folder(tmp_path).notes
    assert (note.code, note.is_error) == ("GC021", True)
    assert note.summary == f"{tmp_path / 'shut'} can't be listed: Permission denied"


def test_every_code_is_explained_in_sentences() -> None:
    for code, (summary, explanation) in FLEET_CODES.items():
        assert code.startswith("GC85")
        assert summary.endswith(".")
        assert len(explanation) > len(summary)
