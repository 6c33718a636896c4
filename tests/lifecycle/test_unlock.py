"""A killed run's site is freed: its lock, and the lock of its stack where it has one."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.unlock import unlock
from gcluster.lifecycle.state import HeldLock, lock_state
from gcluster.lifecycle.state.store import utc_now
from gcluster.stacks.provider import SiteContext, provider_error
from gcluster.stacks.simulated.provider import SimulatedProvider

from .sample_cluster import SampleCluster


@pytest.fixture
def held(sample: SampleCluster) -> int:
    """Leave a lock behind, as a killed run does; return its number."""
    sample.up()
    holder = HeldLock(sample.open().store, "up", utc_now)
    holder.take(["lab"])
    return holder.epochs["lab"]


def test_a_site_without_a_stack_is_released_and_no_more(sample: SampleCluster, held: int) -> None:
    done = unlock(sample.open(running=True), "lab", held)
    assert (done.lock, done.record.reason) == (f"lab/{held}", "up")
    assert (done.stack_freed, done.diagnostics) == (False, ())
    assert not lock_state(sample.open().store, "lab").held


def test_a_stack_is_freed_while_the_site_is_held(
    sample: SampleCluster, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def cancel(_: SimulatedProvider, context: SiteContext) -> bool:
        seen.append(lock_state(sample.open().store, context.site).held)
        return True

    monkeypatch.setattr(SimulatedProvider, "has_stack", True)
    monkeypatch.setattr(SimulatedProvider, "cancel", cancel)
    assert unlock(sample.open(running=True), "lab", held).stack_freed
    assert seen == [True]
    assert not lock_state(sample.open().store, "lab").held


def test_why_a_stack_is_not_free_is_reported_and_the_site_is_free_all_the_same(
    sample: SampleCluster, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(_: SimulatedProvider, context: SiteContext) -> bool:
        raise provider_error("GC965", f"no engine for {context.site}")

    monkeypatch.setattr(SimulatedProvider, "has_stack", True)
    monkeypatch.setattr(SimulatedProvider, "cancel", cancel)
    done = unlock(sample.open(running=True), "lab", held)
    assert [found.code for found in done.diagnostics] == ["GC965"]
    assert not done.stack_freed
    assert not lock_state(sample.open().store, "lab").held


def test_the_stack_of_a_lock_that_is_not_held_is_not_touched(
    sample: SampleCluster, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(_: SimulatedProvider, __: SiteContext) -> bool:
        raise AssertionError

    monkeypatch.setattr(SimulatedProvider, "has_stack", True)
    monkeypatch.setattr(SimulatedProvider, "cancel", cancel)
    with pytest.raises(LifecycleError) as error:
        unlock(sample.open(running=True), "lab", held - 1)
    assert error.value.diagnostics[0].code == "GC904"
