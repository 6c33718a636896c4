"""Golden cases of `validate`: one file for each code in tests/cases/validate, and how they load.

A case is a spec (`spec`), the files that it names (`files`, by their path from the spec) and all
that is found in it (`finds`). A case is added by hand without `finds`; then
`pytest -n 0 tests/schemas/test_cases.py -k CODE --update-goldens` writes what is found.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden_files import CASES, finding, read_cases, unpack

from gcluster.schemas.load import Loaded, load, load_text

FOLDER = CASES / "validate"
CODES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@dataclass(frozen=True)
class Case:
    """One case of a code."""

    code: str
    name: str

    def __str__(self) -> str:
        """Return CODE/NAME."""
        return f"{self.code}/{self.name}"

    @property
    def path(self) -> Path:
        """The file that holds the case."""
        return FOLDER / f"{self.code}.yaml"

    @property
    def spec(self) -> str:
        """The text of the spec."""
        text: str = read_cases(self.path)[self.name]["spec"]
        return text

    @property
    def expected(self) -> list[dict[str, Any]]:
        """What is to be found."""
        finds: list[dict[str, Any]] = read_cases(self.path)[self.name]["finds"]
        return finds

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Give a folder with the spec (spec.yaml) and the files that it names."""
        files = read_cases(self.path)[self.name].get("files", {})
        with tempfile.TemporaryDirectory() as folder:
            yield unpack({"spec.yaml": self.spec, **files}, Path(folder))

    def load(self) -> Loaded:
        """Load the spec; only one that names files is written to disk."""
        if "files" not in read_cases(self.path)[self.name]:
            return load_text(self.spec, file="spec.yaml", folder=FOLDER)
        with self.folder() as folder:
            return load(folder / "spec.yaml")

    def findings(self) -> list[dict[str, Any]]:
        """Return what is found now."""
        return [finding(diagnostic) for diagnostic in self.load().diagnostics]


def cases(code: str) -> list[Case]:
    """Return the cases of a code."""
    return [Case(code, name) for name in read_cases(FOLDER / f"{code}.yaml")]


def all_cases() -> list[Case]:
    """Return the cases of all codes."""
    return [case for code in CODES for case in cases(code)]
