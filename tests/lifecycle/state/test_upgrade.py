"""A state of format 3 is rewritten for this version: nothing is lost, a killed run continues."""

from __future__ import annotations

import json
import shutil
from itertools import count
from pathlib import Path

import pytest
import yaml
from tests.golden_files import CASES

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.state_upgrade import StateUpgrade, upgrade_state
from gcluster.lifecycle.state import EventLog, Journal, StateStore, acquire, store
from gcluster.lifecycle.state.check import check_state
from gcluster.lifecycle.state.connect import connect
from gcluster.lifecycle.state.process import ProcessIdentity
from gcluster.lifecycle.state.store import OldFormatError, without_hash

from ..sample_cluster import SampleCluster, tree
from .killing import Killed, KillingBucket

NODES = 4
ADDED = ("SpecStored", "DamageAccepted")
"""Events that format 3 didn't have."""


def _as_format_3(state: Path) -> None:
    """Take from a state what format 4 added: hashes, the chain of events, their new kinds."""
    for path in sorted(state.rglob("*")):
        if not path.is_file():
            continue
        key = str(path.relative_to(state))
        content = without_hash(key, path.read_bytes())
        if key.startswith("events/"):
            event = json.loads(content)
            del event["previous"], event["cluster"]
            if event["kind"] in ADDED:  # numbers have no gaps: something else without meaning
                event |= {"kind": "StageDone", "data": {"type": "StageDone", "stage": "spec"}}
            content = json.dumps(event).encode()
        path.write_bytes(content)
    (state / "format.json").write_bytes(b'{"version":3}')


@pytest.fixture
def old(sample: SampleCluster) -> SampleCluster:
    """Give a cluster that came up, with its state in format 3."""
    sample.up()
    _as_format_3(sample.state)
    return sample


def _upgrade(sample: SampleCluster, *, answer: bool = True) -> StateUpgrade:
    return upgrade_state(str(sample.path), confirm=lambda _: answer)


def _damage(sample: SampleCluster) -> list[str]:
    return [item.key for item in check_state(StateStore.open(f"file://{sample.state}")).damage]


def test_nothing_is_lost_and_the_cluster_continues(old: SampleCluster) -> None:
    with pytest.raises(OldFormatError, match="its format is 3"):
        old.up()
    done = _upgrade(old)
    assert (done.before, done.after, done.objects > NODES) == (3, 4, True)
    assert _damage(old) == []
    again = old.up()
    assert (again.exit_code, again.changed) == (Exit.OK, False)
    assert old.down().removed == {"node": NODES}
    assert old.in_the_provider() == {}


def test_what_a_later_damage_does_is_noticed(old: SampleCluster) -> None:
    _upgrade(old)
    for key in ("applied/000001.json", "events/000000000002.json", "cluster.json"):
        path = old.state / key
        before = path.read_bytes()
        path.write_bytes(before.replace(b"0", b"1"))
        assert _damage(old) == [key]
        path.unlink()
        assert key in _damage(old)
        path.write_bytes(before)
    assert _damage(old) == []


def test_a_second_time_and_the_answer_no_change_nothing(old: SampleCluster) -> None:
    before = tree(old.state)
    with pytest.raises(LifecycleError, match="nothing was changed"):
        _upgrade(old, answer=False)
    assert tree(old.state) == before
    _upgrade(old)
    after = tree(old.state)
    assert _upgrade(old, answer=False).objects == 0
    assert tree(old.state) == after


def test_a_site_that_another_command_works_on_is_left_alone(old: SampleCluster) -> None:
    _upgrade(old)
    held = StateStore.open(f"file://{old.state}")
    with acquire(held, ("lab",), reason="up"):
        _as_format_3(old.state)
        with pytest.raises(LifecycleError) as refused:
            _upgrade(old)
        assert refused.value.exit_code is Exit.LOCKED
        assert json.loads((old.state / "format.json").read_bytes()) == {"version": 3}


@pytest.mark.parametrize("content", [b"", b'{"spec":"apiV', b"\x93\x00\xff{]"])
@pytest.mark.parametrize("key", ["applied/000001.json", "events/000000000002.json", "cluster.json"])
def test_what_was_damaged_before_is_damage_afterwards(
    old: SampleCluster, key: str, content: bytes
) -> None:
    (old.state / key).write_bytes(content)
    _upgrade(old)
    assert _damage(old) == [key]


def test_killed_at_any_write_it_continues(
    old: SampleCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = tree(old.state)
    for writes in count():
        shutil.rmtree(old.state)
        for name, content in original.items():
            (old.state / name).parent.mkdir(parents=True, exist_ok=True)
            (old.state / name).write_bytes(content)
        with monkeypatch.context() as patch:
            bucket = KillingBucket(connect(f"file://{old.state}"), writes)
            patch.setattr(store, "connect", lambda _, bucket=bucket: bucket)
            try:
                _upgrade(old)
            except Killed:
                pass
            else:
                break
        with monkeypatch.context() as patch:
            patch.setattr(ProcessIdentity, "is_gone", lambda _: True)
            _upgrade(old)
        assert _damage(old) == [], writes
    assert writes > len(original)
    assert old.up().changed is False


def test_a_state_that_format_3_s_gcluster_wrote_is_read_whole(tmp_path: Path) -> None:
    written: dict[str, str] = yaml.safe_load((CASES / "state/format-3.yaml").read_text())
    spec = json.loads(written["applied/000001.json"])["spec"]
    (tmp_path / "old.yaml").write_text(spec)
    state = tmp_path / ".gcluster" / "old"
    for key, content in written.items():
        (state / key).parent.mkdir(parents=True, exist_ok=True)
        (state / key).write_text(content.strip(), encoding="utf-8")
    upgrade_state(str(tmp_path / "old.yaml"), confirm=lambda _: True)
    upgraded = StateStore.open(f"file://{state}")
    assert check_state(upgraded).damage == ()
    (run,) = Journal(EventLog(upgraded)).runs()
    assert (run.command, run.state, run.exit_code) == ("up", "finished", 0)
