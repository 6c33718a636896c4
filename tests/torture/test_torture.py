"""A fixed part of what `make torture` plays, in every run of the tests."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from gcluster.lifecycle.state import store

from . import faults
from .bad_inputs import PLACES, TEXTS, VERBS, broken, every
from .process import run
from .scenario import BrokenError, Scenario

RUNS = 24
SEED = 20_000
INPUTS = 60


def test_whatever_two_things_go_wrong_what_the_messages_say_leads_back(tmp_path: Path) -> None:
    happened: Counter[str] = Counter()
    for seed in range(SEED, SEED + RUNS):
        scenario = Scenario(seed, tmp_path / str(seed))
        scenario.play()
        happened += scenario.happened
    assert happened["commands"] > RUNS * 6
    assert happened["killed"] > 0


def test_every_object_of_a_state_is_damaged_in_every_way_by_some_fault() -> None:
    names = {fault.name for fault in faults.FAULTS}
    assert len(names) == len(faults.FAULTS)
    for prefix in faults.PREFIXES:
        for way in faults.WAYS:
            assert f"{prefix.rstrip('/')} {way}" in names


def test_forty_bad_inputs_end_every_verb_with_words(tmp_path: Path) -> None:
    assert len(TEXTS) + len(PLACES) >= 40
    draw = random.Random(SEED)  # noqa: S311  # a random run, not a key
    some = draw.sample(list(every()), INPUTS)
    assert len({verb for _, verb in some}) > len(VERBS) // 2
    assert broken(iter(some), tmp_path) == []


def test_the_harness_notices_when_hashes_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = next(fault for fault in faults.FAULTS if fault.name == "secrets edited")
    Scenario(SEED, tmp_path / "looked at", (fault,)).play()
    monkeypatch.setattr(store, "without_hash", lambda _, stored: stored)
    with pytest.raises(BrokenError):
        Scenario(SEED, tmp_path / "not looked at", (fault,)).play()


def test_a_command_that_is_killed_or_hangs_is_seen_as_such(tmp_path: Path) -> None:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    assert run(("--version",), tmp_path, (kill,)).code is None
    assert run(("--version",), tmp_path).code == 0
