"""A damaged state: damage is named with the next command, and repaired; nodes are not lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.places import data_home
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.down.down import down
from gcluster.lifecycle.state import StateStore, acquire, lock_state
from gcluster.lifecycle.state.check import check_state
from gcluster.lifecycle.state.repair import StateRepair, repair_state

from ..cloud_double import PurchaseScenario
from ..sample_cluster import SampleCluster

NODES = 4


@pytest.fixture
def running(sample: SampleCluster) -> SampleCluster:
    """Give a cluster that came up."""
    sample.up()
    return sample


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _garbage(path: Path) -> None:
    path.write_bytes(b"\x93\x00\xff{]" * 20)


def _other(path: Path) -> None:
    """Change it as an editor does: still well-formed, and not what was written."""
    path.write_bytes(path.read_bytes().replace(b"0", b"1"))


def _gone(path: Path) -> None:
    path.unlink()


WAYS = pytest.mark.parametrize("inflict", [_empty, _cut, _garbage, _other, _gone])


def _refusal(act: Callable[[], object]) -> LifecycleError:
    with pytest.raises(LifecycleError) as caught:
        act()
    return caught.value


def _repair(sample: SampleCluster, **options: object) -> StateRepair:
    return repair_state(str(sample.path), confirm=lambda _: True, **options)  # type: ignore[arg-type]  # as given


def _damaged(sample: SampleCluster) -> list[str]:
    url = f"file://{sample.state}"
    checked = check_state(StateStore.open(url, checks_format=False))
    return [item.key for item in checked.damage]


@WAYS
@pytest.mark.parametrize(
    "key",
    ["applied/000001.json", "cluster.json", "format.json", "events/000000000003.json"],
)
def test_damage_is_named_and_repaired_and_what_runs_is_still_listed(
    running: SampleCluster, key: str, inflict: Callable[[Path], None]
) -> None:
    before = running.open(running=True).id
    inflict(running.state / key)
    for act in (running.down, running.up):
        refusal = _refusal(act)
        assert [d.code for d in refusal.diagnostics] == ["GC900"]
        assert key in refusal.diagnostics[0].summary
        assert f"gcluster state repair {running.path}" in refusal.diagnostics[0].hint
    assert _damaged(running) == [key]
    repaired = _repair(running)
    assert (repaired.left, key in repaired.done) == ((), True)
    assert _damaged(running) == []
    assert running.open(running=True).id == before
    assert running.down().removed == {"node": NODES}
    assert running.in_the_provider() == {}


@WAYS
def test_a_spec_that_was_replaced_since_is_named_too_and_given_up_without_a_second_message(
    running: SampleCluster, inflict: Callable[[Path], None]
) -> None:
    running.write(count=5)
    running.up()
    key = "applied/000001.json"
    inflict(running.state / key)
    (found,) = check_state(StateStore.open(f"file://{running.state}")).damage
    assert (found.key, found.remedy) == (key, "accepted")
    assert found.then == "nothing: another was applied since"
    assert running.up().exit_code == 0  # no run needs it
    repaired = _repair(running)
    assert (repaired.left, list(repaired.done)) == ((), [key])
    assert _damaged(running) == []
    inflict(running.state / "applied/000002.json")
    assert _damaged(running) == ["applied/000002.json"]


@pytest.mark.parametrize("lost", ["applied", "events", "lock", "applied events", ".", ". index"])
def test_a_lost_part_of_the_state_is_no_reason_to_drop_nodes(
    running: SampleCluster, lost: str
) -> None:
    for name in lost.split():
        folder = data_home() / "clusters" if name == "index" else running.state / name
        if name != "index":
            shutil.rmtree(folder)
    refusal = _refusal(running.down)
    assert "gcluster state repair" in refusal.diagnostics[0].hint
    assert _repair(running).left == ()
    assert running.down().removed == {"node": NODES}


def test_a_lost_state_is_reported_before_up_makes_a_second_cluster(running: SampleCluster) -> None:
    shutil.rmtree(running.state)
    refusal = _refusal(running.up)
    assert (refusal.diagnostics[0].code, refusal.exit_code) == ("GC1165", Exit.LEFTOVERS)
    assert "node gpu003" in refusal.diagnostics[0].detail
    _repair(running)
    assert not running.up().failed_hosts
    assert running.down().removed == {"node": NODES}


def test_a_lost_state_of_a_cluster_that_is_gone_blocks_nothing(running: SampleCluster) -> None:
    running.down()
    shutil.rmtree(running.state)
    assert running.down().nothing_there
    assert _repair(running).done == {}
    running.up()
    assert running.down().removed == {"node": NODES}


def test_a_version_that_never_was_is_damage(running: SampleCluster) -> None:
    (running.state / "format.json").write_bytes(b'{"version": -1}')
    refusal = _refusal(running.up)
    assert refusal.diagnostics[0].code == "GC900"
    assert "format.json is damaged: there is no version -1" in refusal.diagnostics[0].summary


def test_what_the_lost_events_recorded_is_queried_from_the_sites(running: SampleCluster) -> None:
    before = running.in_the_ledger()
    for event in sorted((running.state / "events").iterdir())[:-1]:
        event.unlink()
    repaired = _repair(running)
    assert set(repaired.adopted) == {f"lab: {key}" for key in ("node/head", *_GPU)}
    assert running.in_the_ledger() == before


_GPU = tuple(f"node/gpu{n:03d}" for n in range(1, NODES))


def test_a_damaged_lock_is_held_by_an_unknown_holder_until_it_is_unlocked(
    running: SampleCluster,
) -> None:
    store = StateStore.open(f"file://{running.state}")
    with acquire(store, ["lab"], reason="up") as lock:
        epoch = lock.epochs["lab"]
        _garbage(running.state / f"lock/lab/{epoch:06d}")
        refusal = _refusal(running.down)
        assert (refusal.diagnostics[0].code, refusal.exit_code) == ("GC903", Exit.LOCKED)
        assert f"gcluster unlock {running.path} --lock lab/{epoch}" in refusal.diagnostics[0].hint
        from gcluster.lifecycle.cluster.unlock import unlock  # noqa: PLC0415

        assert unlock(running.open(running=True), "lab", epoch).record is None
    assert running.down().removed == {"node": NODES}


@WAYS
def test_the_end_of_a_damaged_lock_never_gives_the_same_number_again(
    running: SampleCluster, inflict: Callable[[Path], None]
) -> None:
    url = f"file://{running.state}"
    epoch = lock_state(StateStore.open(url), "lab").epoch
    inflict(running.state / f"lock/lab/{epoch:06d}")
    assert lock_state(StateStore.open(url), "lab").epoch == epoch
    _repair(running)
    assert _damaged(running) == []
    running.down()
    assert lock_state(StateStore.open(url), "lab").epoch > epoch


def test_locks_that_are_gone_are_named_and_their_numbers_are_not_given_again(
    running: SampleCluster,
) -> None:
    running.write(count=2)
    epoch = lock_state(StateStore.open(f"file://{running.state}"), "lab").epoch
    shutil.rmtree(running.state / "lock")
    refusal = _refusal(lambda: running.up(allow="delete:gpu003"))
    assert refusal.diagnostics[0].code == "GC900"
    assert f"lock/lab/{epoch:06d}" in refusal.diagnostics[0].summary
    _repair(running)
    assert lock_state(StateStore.open(f"file://{running.state}"), "lab").epoch > epoch
    assert running.down().removed == {"node": NODES}


def test_a_damaged_secret_is_given_up_only_by_name(running: SampleCluster) -> None:
    key = "secrets/munge/000001.000001.json"
    _garbage(running.state / key)
    repaired = _repair(running)
    assert ([item.key for item in repaired.left], repaired.exit_code) == ([key], Exit.FAILED)
    with pytest.raises(LifecycleError, match="secrets/other is not damaged"):
        _repair(running, discard=["secrets/other"])
    repaired = _repair(running, discard=[key])
    assert (repaired.left, repaired.exit_code) == ((), Exit.OK)
    moved = repaired.done[key].partition(";")[0].removeprefix("given up: moved to ")
    assert (running.state / moved).read_bytes().startswith(b"\x93")
    running.up()


def test_a_spec_without_a_site_that_the_ledger_has_is_not_taken_for_what_was_applied(
    running: SampleCluster,
) -> None:
    (running.state / "applied/000001.json").unlink()
    running.path.write_text(running.path.read_text().replace("lab", "den"))
    refusal = _refusal(lambda: _repair(running))
    assert "lacks site lab" in refusal.diagnostics[0].summary
    assert _damaged(running) == ["applied/000001.json"]


def test_repair_queries_and_a_no_changes_nothing(running: SampleCluster) -> None:
    (running.state / "cluster.json").unlink()
    refusal = _refusal(lambda: repair_state(str(running.path), confirm=lambda _: False))
    assert (refusal.diagnostics[0].code, refusal.exit_code) == ("GC909", Exit.REFUSED)
    assert _damaged(running) == ["cluster.json"]


def test_an_object_that_is_copied_over_another_is_damage(running: SampleCluster) -> None:
    events = running.state / "events"
    shutil.copy(events / "000000000001.json", events / "000000000002.json")
    assert _damaged(running) == ["events/000000000002.json"]


def test_an_event_that_was_written_again_is_reported_by_its_successor(
    running: SampleCluster,
) -> None:
    from gcluster.lifecycle.state.store import with_hash, without_hash  # noqa: PLC0415

    key = "events/000000000002.json"
    stored = (running.state / key).read_bytes()
    forged = without_hash(key, stored).replace(b'"actor":"', b'"actor":"not')
    (running.state / key).write_bytes(with_hash(key, forged))
    assert _damaged(running) == [key]


@pytest.mark.parametrize("verb", ["up", "down"])
def test_tagged_resources_of_a_cloud_are_found_without_the_index(
    purchase: PurchaseScenario, verb: str
) -> None:
    """Things of clouds carry the cluster's name and no id. The cloud is a double."""
    purchase.up()
    shutil.rmtree(purchase.folder / "state")
    shutil.rmtree(data_home() / "clusters")

    def take_down() -> None:
        down(purchase.open(), silent, confirm=lambda _: True)

    refusal = _refusal(purchase.up if verb == "up" else take_down)
    assert (refusal.diagnostics[0].code, refusal.exit_code) == ("GC1165", Exit.LEFTOVERS)
