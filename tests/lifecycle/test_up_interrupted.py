"""`up` may end anywhere: run again, it reaches the same end and creates nothing twice."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.cluster.progress import Progress, silent
from gcluster.lifecycle.state import Journal, StateStore
from gcluster.lifecycle.up.up import up

from .trial import Trial

FAULTS = ", faults: {seed: 11, create_failure_rate: 0.4, lost_response_rate: 0.3}"
MOST = 60
"""More progress events and more writes than one `up` of four nodes has."""


class Killed(BaseException):
    """What is raised where a process would be killed."""


def _dies_at(number: int) -> Iterator[None]:
    """Yield until step `number`, which raises; go on afterwards as if nothing had been."""
    for step in count():
        if step == number:
            raise Killed
        yield


def _comes_up_without(trial: Trial) -> bool:
    """Bring the cluster up; say whether it got there without being killed."""
    try:
        trial.up()
    except Killed:
        return False
    return True


def _assert_whole(trial: Trial) -> None:
    there = trial.in_the_provider()
    assert sorted(there) == [
        "lab/node/gpu001",
        "lab/node/gpu002",
        "lab/node/gpu003",
        "lab/node/head",
    ]
    assert trial.in_the_ledger() == there
    assert trial.open().ledger.open_intents() == ()
    assert len(trial.stamps()) == 4
    assert not trial.up(answer=False).changed


def test_killed_at_every_progress_event_it_ends_the_same(own_places: Path) -> None:
    for number in range(MOST):
        trial = Trial(own_places / str(number) / "cluster.yaml")
        trial.write(site=FAULTS)
        steps = _dies_at(number)

        def report(_: Progress, steps: Iterator[None] = steps) -> None:
            next(steps)

        try:
            trial.up(report)
        except Killed:
            trial.up()
            _assert_whole(trial)
        else:
            assert number > 5  # every event was tried
            return
    pytest.fail("up never ended")


def test_killed_at_every_progress_event_it_creates_no_node_twice(own_places: Path) -> None:
    for number in range(MOST):
        trial = Trial(own_places / str(number) / "cluster.yaml")
        steps = _dies_at(number)

        def report(_: Progress, steps: Iterator[None] = steps) -> None:
            next(steps)

        try:
            trial.up(report)
        except Killed:
            trial.up()
            assert trial.created_ever() == 4
        else:
            assert number > 3  # every event was tried
            return
    pytest.fail("up never ended")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_write_of_its_state_it_ends_the_same(
    own_places: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    create = StateStore.put_new
    for number in range(MOST):
        trial = Trial(own_places / str(number) / "cluster.yaml")
        steps = _dies_at(number)

        def put_new(
            store: StateStore, key: str, data: bytes, steps: Iterator[None] = steps
        ) -> None:
            if moment == "before":
                next(steps, None)
            create(store, key, data)
            if moment == "after":
                next(steps, None)

        with monkeypatch.context() as patch:
            patch.setattr(StateStore, "put_new", put_new)
            came_up = _comes_up_without(trial)
        if came_up:
            assert number > 8  # every write was tried
            return
        trial.up()
        _assert_whole(trial)
        assert trial.created_ever() == 4
    pytest.fail("up never ended")


DIES = """\
import os, sys
from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.up.up import up
steps = iter(range(int(sys.argv[2])))
def report(_):
    if next(steps, None) is None:
        os._exit(9)
up(open_cluster(sys.argv[1]), report, confirm=lambda _: True)
"""


def _killed_process(trial: Trial, after: int) -> int:
    """Run `up` in a process that ends without a word after some progress events."""
    return subprocess.run(
        [sys.executable, "-c", DIES, str(trial.path), str(after)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    ).returncode


@pytest.mark.parametrize("after", [0, 2, 4])
def test_the_lock_of_a_process_that_was_killed_does_not_stop_the_next(
    trial: Trial, after: int
) -> None:
    assert _killed_process(trial, after) == 9
    assert Journal(trial.open().events).interrupted() is not None
    told: list[Progress] = []
    assert trial.up(told.append).exit_code is Exit.OK
    assert any("is gone" in repr(progress) for progress in told)
    _assert_whole(trial)


def test_a_cluster_whose_up_was_killed_can_be_taken_down(trial: Trial) -> None:
    assert _killed_process(trial, 1) == 9
    assert trial.in_the_provider()
    assert trial.down().exit_code is Exit.OK
    assert trial.in_the_provider() == {}
    assert trial.in_the_ledger() == {}


def test_an_interrupted_growth_is_finished_by_the_next_up(trial: Trial) -> None:
    trial.up()
    trial.write(count=5)
    assert _killed_process(trial, 1) == 9
    result = up(open_cluster(str(trial.path)), silent, confirm=lambda _: True)
    assert result.exit_code is Exit.OK
    assert trial.in_the_ledger() == trial.in_the_provider()
    assert trial.created_ever() == 6


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    story=st.lists(
        st.tuples(st.integers(1, 5), st.none() | st.integers(0, 8)), min_size=1, max_size=4
    )
)
def test_whatever_was_asked_and_interrupted_before_the_last_up_decides(
    own_places: Path, story: list[tuple[int, int | None]]
) -> None:
    trial = Trial(Path(tempfile.mkdtemp(dir=own_places)) / "cluster.yaml")
    for nodes, dies_at in story:
        trial.write(count=nodes, site=FAULTS, pool=", quorum: 1")
        steps = _dies_at(MOST if dies_at is None else dies_at)
        with suppress(Killed):
            trial.up(lambda _, steps=steps: next(steps), allow="pool:gpu")  # type: ignore[misc]  # bound now
    trial.write(count=2)
    trial.up(allow="pool:gpu")
    assert sorted(trial.in_the_provider()) == [
        "lab/node/gpu001",
        "lab/node/gpu002",
        "lab/node/head",
    ]
    assert trial.in_the_ledger() == trial.in_the_provider()
    assert trial.open().ledger.open_intents() == ()
    assert trial.down().exit_code is Exit.OK
    assert trial.in_the_ledger() == trial.in_the_provider() == {}
