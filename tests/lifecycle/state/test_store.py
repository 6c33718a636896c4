"""The store's layout version, the cluster's identity, and objects that can't be understood."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.state import AlreadyExists, StateStore
from gcluster.lifecycle.state.bucket import Bucket


def test_opening_and_reading_leave_nothing_behind(url: str, directory: Path) -> None:
    store = StateStore.open(url)
    assert store.get("spec.yaml") is None
    assert store.identity() is None
    assert not directory.exists()


def test_the_first_write_says_the_version_of_the_layout(store: StateStore) -> None:
    store.put("observed.json", b"{}")
    assert store.get("format.json") == b'{"version":3}'


def test_a_newer_layout_is_refused_and_named(bucket: Bucket) -> None:
    bucket.create("format.json", b'{"version": 4}')
    with pytest.raises(LifecycleError) as caught:
        StateStore(bucket, url="file:///there")
    assert caught.value.diagnostics[0].code == "GC902"
    assert "its format is 4" in caught.value.diagnostics[0].summary


def test_a_newer_layout_that_appears_before_the_first_write_stops_it(bucket: Bucket) -> None:
    store = StateStore(bucket, url="file:///there")
    bucket.create("format.json", b'{"version": 4}')
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


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"version": "x"}', b"[]"])
@pytest.mark.parametrize("key", ["format.json", "cluster.json"])
def test_a_corrupt_object_is_an_error_that_names_its_key(
    bucket: Bucket, key: str, damage: bytes
) -> None:
    bucket.create(key, damage)
    with pytest.raises(LifecycleError) as caught:
        StateStore(bucket, url="test").identify("demo")
    assert caught.value.diagnostics[0].code == "GC900"
    assert key in caught.value.diagnostics[0].summary
