"""Programs of the cluster take part in the health check: one that fails makes a node unfit."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_health.checks import run_checks
from node_health.expected import Expected, Program
from node_health.probe import Probe


@pytest.fixture
def expected(tmp_path: Path) -> Expected:
    """Return what a node must have: two programs, of which one fails where `hot` is."""
    for name, text in {
        "cool": "[ ! -e ../hot ] || { echo reading; echo 91 C; exit 2; }",
        "ok": ":",
    }.items():
        program = tmp_path / "health.d" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\ncd "$(dirname "$0")"\n{text}\n')
        program.chmod(0o755)
    programs = tuple(Program(name, f"/health.d/{name}") for name in ("cool", "ok"))
    return Expected(node="gpu001", clock=False, disks=(), programs=programs)


def reasons(expected: Expected, root: Path) -> list[str]:
    found = run_checks(expected, Probe(root), {}).findings
    return [f"{each.code}: {each.message}" for each in found if each.code.startswith("hook-")]


def test_a_node_is_fit_while_they_end_well(expected: Expected, tmp_path: Path) -> None:
    assert reasons(expected, tmp_path) == []


def test_the_last_line_of_one_that_fails_is_the_reason(expected: Expected, tmp_path: Path) -> None:
    (tmp_path / "hot").touch()
    assert reasons(expected, tmp_path) == ["hook-cool: cool failed (2): 91 C"]


def test_one_that_is_not_there_fails(expected: Expected, tmp_path: Path) -> None:
    (tmp_path / "health.d/ok").unlink()
    assert reasons(expected, tmp_path) == ["hook-ok: ok is not installed"]
