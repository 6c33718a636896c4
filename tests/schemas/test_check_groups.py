"""No check that has something to say is left unimported: the groups only save time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from gcluster.schemas.checks import CHECKS, CheckContext, registry
from gcluster.schemas.checks.registry import MODULES
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.structure.json_schema import inlined_schema

from .schema_values import values
from .test_round_trip import written
from .validate_cases import all_cases

_ROOT = Path(__file__).parents[2]


def _unneeded(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return modules that found something and that the spec would not have imported."""
    seen: list[CheckContext] = []
    with monkeypatch.context() as patch:
        patch.setattr(registry, "import_for", seen.append)
        found = load_text(text, folder=folder).diagnostics
    prefix = "gcluster.schemas.checks."
    modules = {
        CHECKS[d.code].run.__module__.removeprefix(prefix) for d in found if d.code in CHECKS
    }
    return {module for module in modules if not all(MODULES[module](c) for c in seen)}


def test_what_any_golden_case_or_example_is_reported_comes_from_an_imported_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_out = {}
    for path in sorted((_ROOT / "examples").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        left_out[path.name] = _unneeded(text, path.parent, monkeypatch)
    for case in all_cases():
        with case.folder() as folder:
            left_out[str(case)] = _unneeded(case.spec, folder, monkeypatch)

    assert {spec: modules for spec, modules in left_out.items() if modules} == {}


@settings(
    max_examples=40,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(data=values(inlined_schema(ClusterSpec)))
def test_what_any_spec_is_reported_comes_from_an_imported_module(
    data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _unneeded(written(data), Path(), monkeypatch) == set()


def test_a_small_spec_imports_few_of_them() -> None:
    requested = (
        "import sys; from pathlib import Path; from gcluster.schemas.load import load;"
        "from gcluster.schemas.checks.registry import MODULES;"
        f"load(Path({str(_ROOT / 'examples' / 'local.yaml')!r}));"
        "print(sum(f'gcluster.schemas.checks.{name}' in sys.modules for name in MODULES))"
    )
    done = subprocess.run(
        [sys.executable, "-c", requested], check=True, capture_output=True, text=True
    )

    assert int(done.stdout) < len(MODULES) / 2
