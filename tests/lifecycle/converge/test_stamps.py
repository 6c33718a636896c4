"""Stamps as nodes print them, whole or cut short."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gcluster.inventory.compile.roles import removal_steps
from gcluster.lifecycle.nodes.converge import stamps
from gcluster.lifecycle.nodes.ssh import Unreachable

A, B = "a" * 64, "b" * 64


def answer(*lines: str, started: int = 100) -> str:
    return "\n".join([f"started {started}", *lines, "end of stamps"]) + "\n"


def test_a_node_without_stamps_has_none() -> None:
    assert stamps.parse(answer()) == {}


def test_stamps_are_read_with_their_digests() -> None:
    result = answer("slurm.join 200", "base.install 50", f"slurm.join:{A}", f"base.install:{B}")
    assert stamps.parse(result) == {"slurm.join": A, "base.install": B}


@pytest.mark.parametrize(
    "line", ["base.install:", "base.install:x", f"base.install.new:{A}", f"other:{A}", "junk"]
)
def test_a_damaged_stamp_is_none(line: str) -> None:
    assert stamps.parse(answer(f"slurm.join:{A}", "slurm.join 200", line)) == {"slurm.join": A}


@pytest.mark.parametrize("lost", range(1, 40))
def test_an_answer_that_was_cut_short_is_no_answer(lost: int) -> None:
    result = answer("base.install 50", f"base.install:{B}")
    assert isinstance(stamps.parse(result[: -lost - 1]), Unreachable)


def test_what_was_written_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = str(tmp_path / "stamps")
    old = stamps.DIRECTORY
    monkeypatch.setattr(stamps, "DIRECTORY", there)
    for step, digest in (("base.install", A), ("base.verify", B), ("base.install", B)):
        subprocess.run(["sh", "-c", stamps.write_command(step, digest)], check=True)
    read = stamps.READ.replace(old, there)
    output = subprocess.run(["sh", "-c", read], check=True, capture_output=True, text=True).stdout
    assert stamps.parse(output) == {"base.install": B, "base.verify": B}
    assert {path.name for path in Path(there).iterdir()} == {"base.install", "base.verify"}


def test_a_role_that_ends_leaves_only_what_it_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stamps, "DIRECTORY", str(tmp_path))
    (ended,) = (step for step in removal_steps() if step.role == "wireguard")
    for step in ("wireguard.install", "wireguard.configure", "wireguard.verify", "base.verify"):
        subprocess.run(["sh", "-c", stamps.write_command(step, A)], check=True)
    subprocess.run(["sh", "-c", stamps.done_command(ended, B)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"wireguard.install", "base.verify"}


def test_a_stamp_of_verify_from_before_the_nodes_start_is_worn() -> None:
    result = answer("base.verify 50", f"base.verify:{A}", "base.install 50", f"base.install:{A}")
    assert stamps.parse(result) == {"base.verify": stamps.WORN, "base.install": A}
