"""Golden cases of fleets: specs, and what is said about them together, under tests/cases/fleet."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.fleet import FLEET_CODES, check_fleet
from gcluster.schemas.fleet.folder import load_folder
from gcluster.schemas.load import load

CASES = Path(__file__).parent.parent / "cases" / "fleet"
_NAMES = sorted(path.name for path in CASES.iterdir())


def told(case: str) -> list[dict[str, object]]:
    """Return what is said between the specs of a case, paths from the case's folder."""
    folder = CASES / case
    return [
        {
            "code": found.code,
            "severity": found.severity,
            "file": found.file.removeprefix(f"{folder}/"),
            "path": list(found.path),
            "line": found.span.line if found.span else None,
            "column": found.span.column if found.span else None,
            "summary": found.summary.replace(f"{folder}/", ""),
        }
        for found in check_fleet([load(path) for path in sorted(folder.rglob("*.yaml"))])
    ]


@pytest.mark.parametrize("case", _NAMES)
def test_a_case_says_exactly_what_is_expected(case: str) -> None:
    assert told(case) == msgspec.json.decode((CASES / case / "expected.json").read_bytes())


@pytest.mark.parametrize("case", [name for name in _NAMES if name.endswith("-pass")])
def test_a_case_that_passes_says_nothing(case: str) -> None:
    assert told(case) == []


def test_every_clash_has_a_case() -> None:
    said = {str(found["code"]) for case in _NAMES for found in told(case)}
    assert said == set(FLEET_CODES) - {"GC855", "GC856"}  # about files, in test_fleet_folder.py


@pytest.mark.parametrize("case", _NAMES)
def test_the_order_of_the_folder_is_the_order_of_the_paths(case: str) -> None:
    files = [loaded.file for loaded in load_folder(CASES / case).specs]
    assert files == sorted(files, key=Path)
