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

from .sample_cluster import SampleCluster

FAULTS = ", faults: {seed: 11, create_failure_rate: 0.4, lost_response_rate: 0.3}"
MOST = 60
"""More progress events and more writes than one `up` of four nodes has."""


class Killed(BaseException):
    """What is raised where a process would be killed."""


def _killed_at(number: int) -> Iterator[None]:
    """Yield until step `number`, which raises; go on afterwards as if nothing had been."""
    for step in count():
        if step == number:
            raise Killed
        yield


def _comes_up_without(sample: SampleCluster) -> bool:
    """Bring the cluster up; say whether it got there without being killed."""
    try:
        sample.up()
    except Killed:
        return False
    return True


def _assert_whole(sample: SampleCluster) -> None:
    there = sample.in_the_provider()
    assert sorted(there) == [
        "lab/node/gpu001",
        "lab/node/gpu002",
        "lab/node/gpu003",
        "lab/node/head",
    ]
    assert sample.in_the_ledger() == there
    assert sample.open().ledger.open_intents() == ()
    assert len(sample.stamps()) == 4
    assert not sample.up(answer=False).changed


def test_killed_at_every_progress_event_it_ends_the_same(own_places: Path) -> None:
    for number in range(MOST):
        sample = SampleCluster(own_places / str(number) / "cluster.yaml")
        sample.write(site=FAULTS)
        steps = _killed_at(number)

        def report(_: Progress, steps: Iterator[None] = steps) -> None:
            next(steps)

        try:
            sample.up(report)
        except Killed:
            sample.up()
            _assert_whole(sample)
        else:
            assert number > 5  # every event was tried
            return
    pytest.fail("up never ended")


def test_killed_at_every_progress_event_it_creates_no_node_twice(own_places: Path) -> None:
    for number in range(MOST):
        sample = SampleCluster(own_places / str(number) / "cluster.yaml")
        steps = _killed_at(number)

        def report(_: Progress, steps: Iterator[None] = steps) -> None:
            next(steps)

        try:
            sample.up(report)
        except Killed:
            sample.up()
            assert sample.created_ever() == 4
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
        sample = SampleCluster(own_places / str(number) / "cluster.yaml")
        steps = _killed_at(number)

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
            came_up = _comes_up_without(sample)
        if came_up:
            assert number > 8  # every write was tried
            return
        sample.up()
        _assert_whole(sample)
        assert sample.created_ever() == 4
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


def _killed_process(sample: SampleCluster, after: int) -> int:
    """Run `up` in a process that ends without a word after some progress events."""
    return subprocess.run(
        [sys.executable, "-c", DIES, str(sample.path), str(after)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    ).returncode


@pytest.mark.parametrize("after", [0, 2, 4])
def test_the_lock_of_a_process_that_was_killed_does_not_stop_the_next(
    sample: SampleCluster, after: int
) -> None:
    assert _killed_process(sample, after) == 9
    assert Journal(sample.open().events).interrupted() is not None
    reported: list[Progress] = []
    assert sample.up(reported.append).exit_code is Exit.OK
    assert any("is gone" in repr(progress) for progress in reported)
    _assert_whole(sample)


def test_a_cluster_whose_up_was_killed_can_be_taken_down(sample: SampleCluster) -> None:
    assert _killed_process(sample, 1) == 9
    assert sample.in_the_provider()
    assert sample.down().exit_code is Exit.OK
    assert sample.in_the_provider() == {}
    assert sample.in_the_ledger() == {}


def test_an_interrupted_growth_is_finished_by_the_next_up(sample: SampleCluster) -> None:
    sample.up()
    sample.write(count=5)
    assert _killed_process(sample, 1) == 9
    result = up(open_cluster(str(sample.path)), silent, confirm=lambda _: True)
    assert result.exit_code is Exit.OK
    assert sample.in_the_ledger() == sample.in_the_provider()
    assert sample.created_ever() == 6


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    run=st.lists(
        st.tuples(st.integers(1, 5), st.none() | st.integers(0, 8)), min_size=1, max_size=4
    )
)
def test_whatever_was_queried_and_interrupted_before_the_last_up_decides(
    own_places: Path, run: list[tuple[int, int | None]]
) -> None:
    sample = SampleCluster(Path(tempfile.mkdtemp(dir=own_places)) / "cluster.yaml")
    for nodes, dies_at in run:
        sample.write(count=nodes, site=FAULTS, pool=", quorum: 1")
        steps = _killed_at(MOST if dies_at is None else dies_at)
        with suppress(Killed):
            sample.up(lambda _, steps=steps: next(steps), allow="pool:gpu")  # type: ignore[misc]  # bound now
    sample.write(count=2)
    sample.up(allow="pool:gpu")
    assert sorted(sample.in_the_provider()) == [
        "lab/node/gpu001",
        "lab/node/gpu002",
        "lab/node/head",
    ]
    assert sample.in_the_ledger() == sample.in_the_provider()
    assert sample.open().ledger.open_intents() == ()
    assert sample.down().exit_code is Exit.OK
    assert sample.in_the_ledger() == sample.in_the_provider() == {}
