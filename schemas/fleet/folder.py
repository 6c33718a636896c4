"""Load the specs of a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ..catalog import Catalog
from ..diagnostics import Diagnostic, Severity
from ..load import Loaded, load

Kind: TypeAlias = Literal["spec", "other document of gcluster", "something else"]

_OTHER_DOCUMENTS = ("gcluster/policies/", "gcluster/catalog/", "gcluster/fleet/")
_ROOTS = frozenset({"sites", "pools", "scheduler"})
_ENOUGH_ROOTS = 2
"""Root keys that make a spec of a file whose apiVersion is missing or misspelt."""
_UNREADABLE = frozenset({"GC017", "GC020", "GC021"})
_API_VERSION = re.compile(
    r"""^\{?\s*["']?apiVersion["']?\s*:\s*["']?gcluster/(?!policies/|catalog/|fleet/)""",
    re.MULTILINE,
)
_ROOT_KEY = re.compile(r"^(sites|pools|scheduler)\s*:", re.MULTILINE)


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder holds."""

    specs: tuple[Loaded, ...]
    """Every cluster spec below it, right or wrong, sorted by path."""
    notes: tuple[Diagnostic, ...]
    """Files left out, folders that can't be read, or that there is no spec at all."""


def load_folder(folder: Path, *, catalog: Catalog | None = None) -> Folder:
    """Load every spec below a folder.

    Args:
        folder: where to look: all *.yaml and *.yml below it, each file once. Hidden files and
            folders are left out, and links to folders are not followed.
        catalog: machine types to check against; default: the catalog that comes with gcluster.
    """
    files, notes = _yaml_files(folder)
    specs: list[Loaded] = []
    for file in files:
        loaded = load(file, catalog=catalog)
        kind = _kind(loaded)
        if kind == "spec":
            specs.append(loaded)
        elif kind == "something else":
            notes.append(_left_out(str(file)))
    if not specs:
        notes.insert(0, _no_spec(str(folder)))
    return Folder(specs=tuple(specs), notes=tuple(notes))


def _yaml_files(folder: Path) -> tuple[list[Path], list[Diagnostic]]:
    """Return the YAML files below a folder, each once, and what could not be listed."""
    files: list[Path] = []
    problems: list[Diagnostic] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            entries = list(current.iterdir())
        except OSError as error:
            problems.append(_unlisted(str(current), error.strerror or str(error)))
            continue
        for path in entries:
            if path.name.startswith("."):
                continue
            if path.is_dir():
                waiting += [] if path.is_symlink() else [path]
            elif path.suffix in {".yaml", ".yml"} and (path.is_file() or path.is_symlink()):
                files.append(path)
    return _each_once(sorted(files)), sorted(problems, key=lambda problem: problem.file)


def _each_once(paths: Iterable[Path]) -> list[Path]:
    """Leave out links to files that are there already; a link that leads nowhere stays."""
    kept: dict[object, Path] = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            kept[path] = path
        else:
            kept.setdefault((status.st_dev, status.st_ino), path)
    return list(kept.values())


def _kind(loaded: Loaded) -> Kind:
    """Say what a file is, by its root; by its text where that can't be read."""
    if loaded.document is None:
        unreadable = any(found.code in _UNREADABLE for found in loaded.diagnostics)
        return "spec" if unreadable or _looks_like_a_spec(loaded.text) else "something else"
    data = loaded.document.data
    version = data.get("apiVersion")
    if isinstance(version, str) and version.startswith("gcluster/"):
        is_spec = not version.startswith(_OTHER_DOCUMENTS)
        return "spec" if is_spec else "other document of gcluster"
    return "spec" if _has_roots(data) else "something else"


def _looks_like_a_spec(text: str) -> bool:
    return bool(_API_VERSION.search(text)) or _has_roots(_ROOT_KEY.findall(text))


def _has_roots(keys: Iterable[object]) -> bool:
    return len(_ROOTS & {key for key in keys if isinstance(key, str)}) >= _ENOUGH_ROOTS


def _left_out(file: str) -> Diagnostic:
    return Diagnostic(
        code="GC856",
        severity=Severity.NOTE,
        summary="left out: not a cluster spec",
        file=file,
    )


def _no_spec(folder: str) -> Diagnostic:
    return Diagnostic(
        code="GC855",
        severity=Severity.ERROR,
        summary="no cluster spec in this folder",
        file=folder,
        hint="specs are *.yaml or *.yml files with apiVersion: gcluster/v1",
    )


def _unlisted(folder: str, reason: str) -> Diagnostic:
    return Diagnostic(
        code="GC021",
        severity=Severity.ERROR,
        summary=f"{folder} can't be listed: {reason}",
        file=folder,
    )
