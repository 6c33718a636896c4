"""Cases of the renderer: values and the text they become, one file for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.golden_files import CASES, GoldenFiles, case_names, read_cases

from gcluster.cli.console import Console

Read = Callable[[str, str], tuple[Console, dict[str, Any]]]
Check = Callable[[str, str, str], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `KIND_case` once for every case of that kind."""
    for fixture in metafunc.fixturenames:
        kind = fixture.removesuffix("_case")
        if kind != fixture:
            metafunc.parametrize(fixture, case_names(CASES / "render" / f"{kind}.yaml"))


@pytest.fixture
def read() -> Read:
    """Return what reads a case: the console and the values."""

    def read_case(kind: str, name: str) -> tuple[Console, dict[str, Any]]:
        case = read_cases(CASES / "render" / f"{kind}.yaml")[name]
        return Console(**case["console"]), case

    return read_case


@pytest.fixture
def check_text(golden: GoldenFiles) -> Check:
    """Return what compares a text with that of a case."""

    def check(kind: str, name: str, text: str) -> None:
        golden.check_case(CASES / "render" / f"{kind}.yaml", name, "text", text)

    return check
