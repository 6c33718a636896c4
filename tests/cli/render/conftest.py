"""Golden cases of the renderer: values as JSON, the text they become beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.cli.render.surface import Surface

CASES = Path(__file__).parents[2] / "cases" / "render"

Golden = Callable[[str, str], tuple[Surface, Any, str]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `KIND_case` once for every case of that kind."""
    for fixture in metafunc.fixturenames:
        kind = fixture.removesuffix("_case")
        if kind != fixture:
            names = sorted(path.stem for path in (CASES / kind).glob("*.json"))
            assert names
            metafunc.parametrize(fixture, names)


@pytest.fixture
def golden() -> Golden:
    """Return what reads a case: the surface, the values, the expected text."""

    def read(kind: str, name: str) -> tuple[Surface, Any, str]:
        content = json.loads((CASES / kind / f"{name}.json").read_text(encoding="utf-8"))
        expected = (CASES / kind / f"{name}.txt").read_text(encoding="utf-8")
        return Surface(**content.pop("surface")), content, expected

    return read
