"""The store's layout version, the cluster's identity, and objects that can't be understood."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lifecycle.leak_search import spellings

from gcluster.lifecycle.cluster.cluster import open_cluster
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import (
    AlreadyExists,
    Applied,
    EventLog,
    Journal,
    Ledger,
    StateStore,
    acquire,
    applied_number,
    lock_state,
    newest_applied,
    store_applied,
)
from gcluster.lifecycle.state.bucket import Bucket
from gcluster.lifecycle.state.connect import connect
from gcluster.lifecycle.state.store import FORMAT_KEY
from gcluster.lifecycle.up.up import up
from gcluster.schemas.spec import AgeSecrets

from .write_case import CASES, KEY


def test_opening_and_reading_leave_nothing_behind(url: str, directory: Path) -> None:
    store = StateStore.open(url)
    assert store.get("spec.yaml") is None
    assert store.identity() is None
    assert not directory.exists()


def test_the_first_write_has_the_version_of_the_layout(store: StateStore) -> None:
    store.put("observed.json", b"{}")
    assert store.get("format.json") == b'{"version":4}'


def test_a_newer_layout_is_refused_and_named(bucket: Bucket) -> None:
    bucket.create("format.json", b'{"version": 5}')
    with pytest.raises(LifecycleError) as caught:
        StateStore(bucket, url="file:///there")
    assert caught.value.diagnostics[0].code == "GC902"
    assert "its format is 5" in caught.value.diagnostics[0].summary


def test_a_newer_layout_that_appears_before_the_first_write_stops_it(bucket: Bucket) -> None:
    store = StateStore(bucket, url="file:///there")
    bucket.create("format.json", b'{"version": 5}')
    with pytest.raises(LifecycleError):
        store.put("observed.json", b"{}")
    assert bucket.get("observed.json") is None


def test_put_new_never_replaces_even_by_the_same_bytes(store: StateStore) -> None:
    store.put_new("a", b"1")
    with pytest.raises(AlreadyExists):
        store.put_new("a", b"1")


def test_an_identity_is_made_once_and_kept(store: StateStore) -> None:
    first = store.identify("demo")
    assert store.identify("demo") == first
    assert first.name == "demo"
    assert len(first.id) == 16


def test_two_states_have_two_identities(url: str) -> None:
    ids = {StateStore.open(f"{url}-{number}").identify("demo").id for number in range(2)}
    assert len(ids) == 2


def test_the_state_of_one_cluster_is_refused_to_another(store: StateStore) -> None:
    store.identify("demo")
    with pytest.raises(LifecycleError) as caught:
        store.identify("other")
    assert '"demo", not to "other"' in caught.value.diagnostics[0].summary


def test_processes_that_race_get_one_identity_and_one_secret(
    url: str, tmp_path: Path, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    actors = [start_actor("identify", url, str(tmp_path / "keys")) for _ in range(5)]
    answers = {actor.communicate()[0] for actor in actors}
    assert [actor.returncode for actor in actors] == [0] * 5
    assert len(answers) == 1


CORRUPT = {
    b"": "it is empty",
    b"{": "it is cut off or overwritten",
    b"\xff\xfe": "it is cut off or overwritten",
    b'{"version": "x"}': "it has no hash",
    b"[]": "it has no hash",
}
"""Damage -> how it is named where an object must carry its hash, as all but format.json."""


@pytest.mark.parametrize("damage", CORRUPT)
@pytest.mark.parametrize("key", ["format.json", "cluster.json"])
def test_a_corrupt_object_is_an_error_that_names_its_key(
    bucket: Bucket, key: str, damage: bytes
) -> None:
    StateStore(bucket, url="test").identify("demo")
    bucket.replace(key, damage)
    with pytest.raises(LifecycleError) as caught:
        StateStore(bucket, url="test").identify("demo")
    assert caught.value.diagnostics[0].code == "GC900"
    problem = CORRUPT[damage] if key != FORMAT_KEY else ""
    assert f"{key} is damaged: {problem}" in caught.value.diagnostics[0].summary


@pytest.fixture(params=sorted(path.name for path in CASES.iterdir() if path.is_dir()))
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a copy of each state that is kept."""
    monkeypatch.setenv("GCLUSTER_FIXTURE_KEY", KEY)
    shutil.copytree(CASES / request.param, tmp_path / "state")
    return f"file://{tmp_path / 'state'}"


def test_a_kept_state_is_read_and_left_as_it_is(kept: str) -> None:
    before = _files(kept)
    store = StateStore.open(kept)
    applied = newest_applied(store)
    assert applied is not None
    assert "name: kept" in applied.spec
    assert b"name: ours" in applied.catalogs["00.yaml"]
    (run,) = Journal(EventLog(store)).runs()
    assert (run.command, run.exit_code) == ("up", 0)
    assert len(Ledger(EventLog(store)).existing()) == 3
    assert len(_vault(kept).reveal("munge")) == 1024
    assert _files(kept) == before


def test_the_state_of_every_released_version_is_kept() -> None:
    text = (CASES.parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[([0-9.]+)\] - (\S+)$", text, re.MULTILINE)
    assert versions
    kept = {path.name for path in CASES.iterdir() if path.is_dir()}
    assert {version for version, date in versions if date != "unreleased"} <= kept


def test_what_each_version_kept_of_a_secret_is_ciphertext(kept: str) -> None:
    munge = _vault(kept).reveal("munge")
    for data in _files(kept).values():
        assert not [answer for answer in spellings(munge) if answer in data]
        assert b"AGE-SECRET-KEY" not in data


@pytest.mark.parametrize(("version", "whose"), [(2, "an older"), (3, "an older"), (5, "a newer")])
def test_a_state_of_another_format_is_refused_and_left_as_it_is(
    kept: str, version: int, whose: str
) -> None:
    connect(kept).replace(FORMAT_KEY, b'{"version": %d}' % version)
    before = _files(kept)
    with pytest.raises(LifecycleError) as error:
        StateStore.open(kept)
    (refusal,) = error.value.diagnostics
    assert refusal.code == "GC902"
    assert f"written by {whose} gcluster: its format is {version}" in refusal.summary
    assert _files(kept) == before


def test_who_opened_it_before_a_newer_one_changed_its_format_gets_no_lock(kept: str) -> None:
    store = StateStore.open(kept)
    connect(kept).replace(FORMAT_KEY, b'{"version": 5}')
    with pytest.raises(LifecycleError) as error, acquire(store, ["lab"], reason="test"):
        pytest.fail("the lock was given")
    assert error.value.diagnostics[0].code == "GC902"
    assert not lock_state(store, "lab").held


def test_up_continues_with_a_kept_state(kept_spec: Path) -> None:
    assert up(open_cluster(str(kept_spec)), silent, confirm=lambda _: True).exit_code == 0
    assert open_cluster(str(kept_spec), running=True).spec.name == "kept"


def test_what_was_applied_is_never_changed_and_the_newest_counts(store: StateStore) -> None:
    assert newest_applied(store) is None
    for text in ("one", "two", "two"):
        store_applied(EventLog(store), Applied(spec=text))
    assert applied_number(store) == 2
    assert newest_applied(store) == Applied(spec="two")
    assert b"one" in (store.get("applied/000001.json") or b"")


def test_two_who_apply_at_once_cannot_both_be_the_newest(bucket: Bucket) -> None:
    class Overtaken(StateStore):
        def put_new(self, key: str, data: bytes) -> None:
            if key.startswith("applied/"):
                super().put_new(key, data.replace(b"mine", b"another"))
            super().put_new(key, data)

    with pytest.raises(LifecycleError, match="another run applied a spec"):
        store_applied(EventLog(Overtaken(bucket, url="test")), Applied(spec="mine"))
    assert newest_applied(StateStore(bucket, url="test")) == Applied(spec="another")


def _vault(url: str) -> SecretVault:
    store, secrets = StateStore.open(url), AgeSecrets(key="env:GCLUSTER_FIXTURE_KEY")
    return SecretVault.open(store, secrets, store.identify("kept").id, Path("/nowhere"))


def _files(url: str) -> dict[str, bytes]:
    root = Path(url.removeprefix("file://"))
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
