"""The nodes' program: each pair meets once, figures are printed, rails are the right ones."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.roles.programs import load_program

FILE = Path(__file__).parents[2] / "roles/allreduce/files/measure.py"


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    """Return the program as a module; importing it starts nothing."""
    return load_program(FILE, "measure_program")


@given(players=st.integers(2, 40))
@settings(max_examples=40)
def test_each_meets_each_other_once_and_none_two_at_a_time(
    measure: ModuleType, players: int
) -> None:
    met: Counter[frozenset[int]] = Counter()
    for number in measure.rounds_of("all", players):
        partners = {one: measure.partner(one, players, number) for one in range(players)}
        for one, other in partners.items():
            if other is not None:
                assert partners[other] == one != other
        met.update({frozenset((a, b)) for a, b in partners.items() if b is not None})
    assert set(met.values()) == {1}
    assert len(met) == players * (players - 1) // 2


def test_a_sample_of_the_rounds_has_every_node_in_each(measure: ModuleType) -> None:
    rounds = list(measure.rounds_of("every:79", 10_000))
    assert len(rounds) == 127
    assert all(measure.partner(one, 10_000, rounds[5]) is not None for one in range(10_000))


def test_a_message_is_another_one_from_each_rank_and_none_of_it_repeats_by_blocks(
    measure: ModuleType,
) -> None:
    first, second = measure.message(0, 4096), measure.message(1, 4096)
    assert (len(first), len(second)) == (4096, 4096)
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert first[:1024] != first[1024:2048]


def test_storage_shows_its_figures_and_leaves_nothing(
    measure: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert measure.storage(Namespace(path=str(tmp_path), mib=2, files=20)) == 0
    lines = capsys.readouterr().out.splitlines()
    answer = [json.loads(line.removeprefix("@measure ")) for line in lines]
    assert answer[0]["wrong"] == 0
    assert {"write", "read"} <= answer[0].keys()
    assert answer[1].keys() == {"create", "stat", "unlink"}
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_reported_and_no_traceback(tmp_path: Path) -> None:
    import subprocess  # noqa: PLC0415  # only here

    words = [sys.executable, str(FILE), "storage", "--path", str(tmp_path / "nowhere")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("measure: [Errno 2]")


def test_rails_are_those_that_nccl_is_given_else_the_active_ports(
    measure: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for device, state in (("mlx5_0", "4: ACTIVE"), ("mlx5_1", "1: DOWN"), ("mlx5_2", "4: ACTIVE")):
        port = tmp_path / device / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text(f"{state}\n")
    monkeypatch.delenv("NCCL_IB_HCA", raising=False)
    assert measure.rails(tmp_path) == ["mlx5_0", "mlx5_2"]
    monkeypatch.setenv("NCCL_IB_HCA", "=mlx5_0:1,mlx5_4:1")
    assert measure.rails(tmp_path) == ["mlx5_0", "mlx5_4"]


def test_a_client_waits_for_its_server_and_passes_on_what_it_printed(
    measure: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of perftest is a double: it fails until its server is there."""
    tool = tmp_path / "ib_write_bw"
    there = tmp_path / "there"
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in *gpu001) [ -e {there} ] || {{ : > {there}; exit 1; }};; esac\n'
        'echo "ran $*"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    server = measure.client_or_server("ib_write_bw", "mlx5_0", 18515, "")
    client = measure.client_or_server("ib_write_bw", "mlx5_0", 18515, "gpu001")
    requested = "-d mlx5_0 -p 18515 -F -D 3 --report_gbits"
    assert measure.ended(server).strip() == f"ran {requested}"
    assert measure.ended(client).strip() == f"ran {requested} gpu001"
