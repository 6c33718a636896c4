"""A host that doesn't do its part in converging itself says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_machine import Machine
from running import module, put_program

RUNS = "case $1 in is-active) echo active ;; is-enabled) echo enabled ;; esac"


@pytest.fixture
def programs(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the two programs; both are well."""
    machine.tool("systemctl", RUNS)
    machine.file("etc/gcluster/converge-signers", "somebody ssh-ed25519 AAAA\n")
    monkeypatch.setattr(module("self_converge_check"), "PROGRAMS", str(tmp_path))
    for name in ("self-converge", "converge-collector"):
        put_program(tmp_path / name, "#!/bin/sh\n")
    return tmp_path


@pytest.mark.parametrize(
    ("role", "program"), [("node", "self-converge"), ("collector", "converge-collector")]
)
def test_a_host_whose_unit_and_program_are_well_does_its_part(
    machine: Machine, programs: Path, role: str, program: str
) -> None:
    assert not machine.call("self_converge_check", {"role": role})["failed"]
    put_program(programs / program, "#!/bin/sh\necho no roots; exit 1\n")
    assert "no roots" in machine.call("self_converge_check", {"role": role})["msg"]
    machine.tool("systemctl", "[ $1 = is-active ] && echo inactive")
    assert "isn't running" in machine.call("self_converge_check", {"role": role})["msg"]


def test_all_that_is_wrong_with_a_node_is_reported_at_once(
    machine: Machine, programs: Path
) -> None:
    del programs
    machine.tool("systemctl", "echo active")
    machine.file("etc/gcluster/converge-signers")
    wrong = machine.call("self_converge_check", {"role": "node"})["differences"]
    assert [line.split()[-1] for line in wrong] == ["machine", "gone"]
