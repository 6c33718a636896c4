"""Beside a process of an older format: an upgrade is done alone, what comes later isn't read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gcluster.lifecycle.burst.lock import LOCK as BURST_LOCK
from gcluster.lifecycle.cluster import open_cluster
from gcluster.lifecycle.outcome import Exit, LifecycleError
from gcluster.lifecycle.progress import silent
from gcluster.lifecycle.run import Run
from gcluster.lifecycle.state import (
    SecretVault,
    StateStore,
    acquire,
    lock_state,
    upgrade,
)
from gcluster.lifecycle.state.box import new_data_key
from gcluster.lifecycle.state.bucket import connect
from gcluster.lifecycle.state.format_3 import add_format_3
from gcluster.lifecycle.state.formats import FORMAT_KEY, Format
from gcluster.lifecycle.state.upgrading import bring_to_newest
from gcluster.lifecycle.up import up
from gcluster.schemas.spec import AgeSecrets

from .killing import Killed, KillingBucket
from .write_case import CASES, KEY

LATER = ("secrets/jwt/000001.age", "secrets/munge/000002.age", "secrets/recipient")
NAMES = ("lab", BURST_LOCK)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a state as format 2 left it."""
    monkeypatch.setenv("GCLUSTER_FIXTURE_KEY", KEY)
    shutil.copytree(CASES / "format-2", tmp_path / "state")
    return f"file://{tmp_path / 'state'}"


def vault(url: str) -> SecretVault:
    """Open the secrets as whoever reads them now."""
    store, secrets = StateStore.open(url), AgeSecrets(key="env:GCLUSTER_FIXTURE_KEY")
    return SecretVault.open(store, secrets, store.identify("kept").id, Path("/nowhere"))


def written_later(url: str) -> None:
    """Write what a process of format 2 does that knows nothing of the upgrade."""
    bucket, other = connect(url), new_data_key()
    for key in LATER[:2]:
        bucket.create(key, other.encrypt(b"of an older gcluster"))
    bucket.create(LATER[2], other.recipient().encode())


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def test_a_version_refuses_each_format_that_came_after_it(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CASES / case, tmp_path / "state")
    found = StateStore.open(f"file://{tmp_path / 'state'}").read(FORMAT_KEY, Format)
    assert found is not None
    monkeypatch.setattr("gcluster.lifecycle.state.store.NEWEST", found.version - 1)
    with pytest.raises(LifecycleError) as error:
        StateStore.open(f"file://{tmp_path / 'state'}")
    assert error.value.diagnostics[0].code == "GC902"


def test_who_opened_it_before_a_newer_one_changed_its_format_gets_no_lock(kept: str) -> None:
    upgrade(StateStore.open(kept))
    store = StateStore.open(kept)
    connect(kept).replace(FORMAT_KEY, b'{"version": 4}')
    with pytest.raises(LifecycleError) as error, acquire(store, ["lab"], reason="test"):
        pytest.fail("the lock was given")
    assert error.value.diagnostics[0].code == "GC902"
    assert not lock_state(store, "lab").held


def test_up_upgrades_nothing_while_an_agent_is_at_work(kept: str, kept_spec: Path) -> None:
    before = vault(kept).version("munge")

    with (
        acquire(StateStore.open(kept), [BURST_LOCK], reason="burst agent"),
        pytest.raises(LifecycleError) as error,
    ):
        up(open_cluster(str(kept_spec)), silent, confirm=lambda _: True)

    (said,) = error.value.diagnostics
    assert (said.code, error.value.exit_code) == ("GC903", Exit.LOCKED)
    assert "for burst agent" in said.summary
    assert "brought to format 3 first, while nobody else is at work" in said.detail
    assert StateStore.open(kept).format() == 2
    assert vault(kept).version("munge") == before
    assert not lock_state(StateStore.open(kept), "lab").held

    assert up(open_cluster(str(kept_spec)), silent, confirm=lambda _: True).exit_code == 0
    assert StateStore.open(kept).format() == 3
    written_later(kept)
    cluster = open_cluster(str(kept_spec), running=True)
    with acquire(cluster.store, ["lab"], reason="test") as lock, Run(cluster, "test", lock):
        assert [note.code for note in lock.notes] == ["GC1170"]


def test_what_an_older_one_writes_later_is_not_read_and_is_put_aside_once(kept: str) -> None:
    munge = vault(kept).version("munge"), vault(kept).reveal("munge")
    upgrade(StateStore.open(kept))
    written_later(kept)
    assert (vault(kept).version("munge"), vault(kept).reveal("munge")) == munge
    assert vault(kept).version("jwt") is None

    store = StateStore.open(kept)
    (said,) = bring_to_newest(store, ["lab"], NAMES)
    assert said.code == "GC1170"
    assert all(key in said.summary for key in LATER)
    assert bring_to_newest(store, ["lab"], NAMES) == ()

    assert (vault(kept).version("munge"), vault(kept).reveal("munge")) == munge
    assert [key for key in LATER if store.get(key) is not None] == []
    assert all(store.get(f"aside/{key}") for key in LATER)


def test_what_a_killed_upgrade_left_goes_without_a_word(kept: str) -> None:
    changes = 0
    while StateStore.open(kept).format() < 3:
        changes += 1
        try:
            upgrade(StateStore(KillingBucket(connect(kept), changes), url=kept))
        except Killed:
            continue
    store = StateStore.open(kept)
    assert store.get("secrets/recipient") is not None
    assert bring_to_newest(store, ["lab"], NAMES) == ()
    assert [key for key in store.list("secrets") if key.endswith((".age", "recipient"))] == []
    assert store.list("aside") == []


def test_where_an_older_one_went_on_after_a_killed_upgrade_it_is_right(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_format_3(StateStore.open(kept))  # and killed before the version was written
    bucket, other = connect(kept), new_data_key()
    monkeypatch.setenv("GCLUSTER_FIXTURE_KEY", other.identity().decode())
    bucket.replace("secrets/recipient", other.recipient().encode())
    bucket.replace("secrets/munge/000001.age", other.encrypt(b"made anew"))
    assert vault(kept).reveal("munge") == b"made anew"
    upgrade(StateStore.open(kept))
    assert vault(kept).reveal("munge") == b"made anew"
    assert StateStore.open(kept).list("aside") == []


def test_an_older_down_after_a_killed_upgrade_leaves_no_key_that_nobody_has(kept: str) -> None:
    add_format_3(StateStore.open(kept))
    store = StateStore.open(kept)
    for key in store.list("secrets"):
        store.delete(key)  # as `down` of format 2 did
    upgrade(store)
    assert vault(kept).keyring.records() == {}
