"""The policy knows no scheduler, no clock, no machine: a twin for Kubernetes takes it as it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gcluster.lifecycle.operations.burst.policy

_FOLDER = Path(gcluster.lifecycle.operations.burst.policy.__file__).parent
_FOREIGN = {"time", "os", "subprocess", "socket", "random", "gcluster.lifecycle.status.slurm"}
_ALLOWED = ("gcluster.schemas.", "gcluster.lifecycle.operations.burst.policy")


@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_module_of_the_policy_imports_nothing_that_has_a_clock_or_a_scheduler(path: Path) -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
    assert names & _FOREIGN == set()
    ours = {name for name in names if name.startswith("gcluster")}
    assert {name for name in ours if not name.startswith(_ALLOWED)} == set()


def test_only_what_reads_a_spec_names_slurm() -> None:
    naming = {
        path.stem
        for path in _FOLDER.glob("*.py")
        if any(
            isinstance(node, ast.Name) and "slurm" in node.id.lower()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert naming <= {"spec_rules"}
