"""Golden cases of fleets: specs, and what is found in them together, in tests/cases/fleet.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.golden_files import CASES, GoldenFiles, case_names, finding, read_cases, unpack

from gcluster.schemas.fleet.clashes import check_fleet
from gcluster.schemas.fleet.codes import FLEET_CODES
from gcluster.schemas.fleet.folder import load_folder
from gcluster.schemas.load import load

CASE_FILE = CASES / "fleet.yaml"
_NAMES = case_names(CASE_FILE)


def findings(case: str, folder: Path) -> list[dict[str, Any]]:
    """Return what is found between the specs of a case, paths from the case's folder."""
    unpack(read_cases(CASE_FILE)[case]["files"], folder)
    specs = [load(path) for path in sorted(folder.rglob("*.yaml"))]
    return [finding(found, folder) for found in check_fleet(specs)]


@pytest.mark.parametrize("case", _NAMES)
def test_a_case_finds_exactly_what_is_expected(
    case: str, golden: GoldenFiles, tmp_path: Path
) -> None:
    golden.check_case(CASE_FILE, case, "finds", findings(case, tmp_path))


@pytest.mark.parametrize("case", [name for name in _NAMES if name.endswith("-pass")])
def test_a_case_that_passes_finds_nothing(case: str) -> None:
    assert read_cases(CASE_FILE)[case]["finds"] == []


def test_every_clash_has_a_case() -> None:
    found = {each["code"] for case in read_cases(CASE_FILE).values() for each in case["finds"]}
    assert found == set(FLEET_CODES) - {"GC855", "GC856"}  # about files, in test_fleet_folder.py


@pytest.mark.parametrize("case", _NAMES)
def test_the_order_of_the_folder_is_the_order_of_the_paths(case: str, tmp_path: Path) -> None:
    folder = unpack(read_cases(CASE_FILE)[case]["files"], tmp_path)
    files = [loaded.file for loaded in load_folder(folder).specs]
    assert files == sorted(files, key=Path)
