"""Everything that a cluster made is removed, and what isn't is named."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gcluster.lifecycle.cluster import places
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.state import HeldLock, Journal, StateStore, acquire
from gcluster.lifecycle.state.process import ProcessIdentity
from gcluster.stacks.provider import Leftover, SiteContext
from gcluster.stacks.simulated.cloud import Cloud
from gcluster.stacks.simulated.provider import SimulatedProvider

from .sample_cluster import SampleCluster, tree


@pytest.fixture
def running(sample: SampleCluster) -> SampleCluster:
    """Give a cluster that came up."""
    sample.up()
    return sample


@pytest.fixture
def disk(running: SampleCluster, monkeypatch: pytest.MonkeyPatch) -> Leftover:
    """Make the provider lose a disk: the double of an API that lost track of one."""
    del running
    forgotten = Leftover(kind="volume", name="scratch", provider_id="vol-1", usd_per_hour=0.1)

    def sweep(_: SimulatedProvider, context: SiteContext) -> tuple[Leftover, ...]:
        del context
        return (forgotten,)

    monkeypatch.setattr(SimulatedProvider, "sweep", sweep)
    return forgotten


def test_everything_is_removed_and_counted_by_kind(running: SampleCluster) -> None:
    result = running.down()
    assert result.exit_code is Exit.OK
    assert (result.nothing_there, result.removed, result.leftovers) == (False, {"node": 4}, ())
    assert running.in_the_provider() == {}


def test_the_ledger_is_empty_afterwards(running: SampleCluster) -> None:
    running.down()
    assert running.in_the_ledger() == {}
    assert running.open(running=True).ledger.open_intents() == ()


def test_the_second_down_has_nothing_to_do(running: SampleCluster) -> None:
    running.down()
    result = running.down(answer=False)
    assert (result.nothing_there, result.removed, result.exit_code) == (True, {}, Exit.OK)


def test_a_cluster_that_never_came_up_is_not_touched(sample: SampleCluster) -> None:
    assert sample.down(answer=False).nothing_there
    assert list(sample.path.parent.iterdir()) == [sample.path]


def test_the_keys_of_an_up_that_has_just_begun_are_kept(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = Event(), Event()
    apply = SimulatedProvider.apply

    def slow(self: SimulatedProvider, context: SiteContext) -> None:
        sample.open().vault.ensure("munge", lambda: b"the key that nodes are about to get")
        begun.set()
        assert go_on.wait(60)
        apply(self, context)

    monkeypatch.setattr(SimulatedProvider, "apply", slow)
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(sample.up)
        assert begun.wait(60)
        munge = sample.open().vault.reveal("munge")
        with pytest.raises(LifecycleError) as error:
            sample.down()
        go_on.set()
        assert coming.result().exit_code is Exit.OK
    assert (error.value.exit_code, error.value.diagnostics[0].code) == (Exit.LOCKED, "GC903")
    assert sample.open().vault.reveal("munge") == munge


def test_the_keys_of_an_up_that_began_and_ended_since_down_read_the_state_are_kept(
    running: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.down()

    def late(*_: object, **answer: Any) -> AbstractContextManager[HeldLock]:
        monkeypatch.undo()
        running.up()
        return acquire(StateStore.open(f"file://{running.state}"), ["lab"], **answer)

    monkeypatch.setattr("gcluster.lifecycle.down.down.acquire", late)
    with pytest.raises(LifecycleError) as error:
        running.down()
    assert (error.value.exit_code, error.value.diagnostics[0].code) == (Exit.LOCKED, "GC904")
    assert len(running.in_the_provider()) == 4
    assert running.open().vault.version("munge") is not None


def test_the_answer_no_touches_nothing(running: SampleCluster) -> None:
    before, there = tree(running.state), running.in_the_provider()
    with pytest.raises(LifecycleError) as error:
        running.down(answer=False)
    assert error.value.exit_code is Exit.REFUSED
    assert tree(running.state) == before
    assert running.in_the_provider() == there


def test_the_question_shows_what_exists(running: SampleCluster) -> None:
    shown: set[str] = set()

    def confirm(existing: tuple[Leftover, ...]) -> bool:
        shown.update(item.name for item in existing)
        return True

    down(running.open(running=True), silent, confirm=confirm)
    assert shown == {"head", "gpu001", "gpu002", "gpu003"}


def test_a_site_that_another_command_works_on_is_left_alone(running: SampleCluster) -> None:
    there = running.in_the_provider()
    held = acquire(running.open().store, ["lab"], reason="up")
    with held, pytest.raises(LifecycleError) as error:
        running.down()
    assert error.value.exit_code is Exit.LOCKED
    assert running.in_the_provider() == there


def test_what_is_left_is_named_and_has_its_own_exit_code(
    running: SampleCluster, disk: Leftover
) -> None:
    result = running.down()
    assert (result.exit_code, result.leftovers) == (Exit.LEFTOVERS, (disk,))


def test_secrets_are_kept_while_something_is_left(running: SampleCluster, disk: Leftover) -> None:
    del disk
    running.down()
    assert list((running.state / "secrets").rglob("*.json"))


def test_keys_and_working_files_are_gone_from_this_machine(
    running: SampleCluster, own_places: Path
) -> None:
    assert list(places.config_home().rglob("*"))
    cluster = running.open()
    homes = [places.data_home() / part / cluster.id for part in ("work", "runs")]
    assert all(home.is_dir() for home in homes)
    running.down()
    assert not any(home.exists() for home in homes)
    assert [path for path in (own_places / "config").rglob("*") if path.is_file()] == []


def test_no_secret_is_left_in_the_state(running: SampleCluster) -> None:
    running.down()
    assert [name for name in tree(running.state) if name.startswith("secrets/")] == []


def test_the_journal_outlives_the_cluster(running: SampleCluster) -> None:
    running.down()
    runs = Journal(running.open().events).runs()
    assert [(run.command, run.exit_code) for run in runs] == [("up", 0), ("down", 0)]


@pytest.mark.parametrize("became", ["edited", "gone"])
def test_what_became_of_the_file_does_not_matter(running: SampleCluster, became: str) -> None:
    if became == "gone":
        running.path.unlink()
    else:
        running.write(count=1)
    assert running.down().removed == {"node": 4}


def test_a_cluster_comes_up_again_after_it_was_taken_down(running: SampleCluster) -> None:
    running.down()
    assert running.up().exit_code is Exit.OK
    assert running.in_the_ledger() == running.in_the_provider()
    assert len(running.in_the_provider()) == 4


def test_an_intent_whose_creation_never_began_is_closed(
    sample: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Cloud, "create", killed)
        with pytest.raises(KeyboardInterrupt):
            sample.up()
    assert sample.open().ledger.open_intents()
    sample.down()
    assert sample.open().ledger.open_intents() == ()


def test_killed_at_every_write_and_reported_again_it_leaves_nothing(
    own_places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = StateStore.put_new
    for number in range(40):
        sample = SampleCluster(own_places / str(number) / "cluster.yaml")
        sample.up()
        writes = count()

        def put_new(
            store: StateStore,
            key: str,
            data: bytes,
            place: tuple[int, Iterator[int]] = (number, writes),
        ) -> None:
            if next(place[1]) == place[0]:
                raise KeyboardInterrupt
            create(store, key, data)

        with monkeypatch.context() as patch:
            patch.setattr(StateStore, "put_new", put_new)
            with suppress(KeyboardInterrupt):
                sample.down()
        with monkeypatch.context() as patch:
            patch.setattr(ProcessIdentity, "is_gone", lambda _: True)  # it was killed
            sample.down()
        assert sample.in_the_provider() == sample.in_the_ledger() == {}
        assert not [name for name in tree(sample.state) if name.startswith("secrets/")]
        if next(writes) <= number:
            assert number > 4  # every write was tried
            return
    pytest.fail("down never ended")
