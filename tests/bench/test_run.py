"""`make bench` says so when a benchmark is over its limit, and the night runs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench import run


@pytest.mark.parametrize(("second_is_ok", "code"), [(True, 0), (False, 1)])
def test_one_benchmark_over_its_limit_fails_them_all_and_the_rest_still_runs(
    monkeypatch: pytest.MonkeyPatch, second_is_ok: bool, code: int
) -> None:
    requested: list[tuple[str, bool]] = []

    def measure(name: str, *, ratios: bool) -> tuple[dict[str, Any], bool]:
        requested.append((name, ratios))
        return {"benchmark": name, "machine": "", "results": []}, name != "b" or second_is_ok

    monkeypatch.setattr(run, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["bench", "--ratios", "a", "b", "c"])

    assert run.main() == code
    assert requested == [("a", True), ("b", True), ("c", True)]


def test_the_night_judges_ratios_and_growth(root: Path) -> None:
    text = (root / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    nightly = yaml.safe_load(text)["jobs"]["nightly"]

    assert "bench" in nightly["strategy"]["matrix"]["verb"]
    assert nightly["steps"][-1]["run"] == ".ci/as-root make ${{ matrix.verb }} RATIOS=1"
    assert "bench.run $(if $(RATIOS),--ratios)" in (root / "Makefile").read_text(encoding="utf-8")
