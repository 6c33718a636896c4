"""What every kind of bucket must do, and what a directory does with bad paths."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lifecycle.state.emulators import STORES

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.state import EventLog, StageDone, StateStore
from gcluster.lifecycle.state.bucket import AlreadyExists, Bucket
from gcluster.lifecycle.state.check import check_state
from gcluster.lifecycle.state.connect import connect


def test_an_object_is_created_only_once(bucket: Bucket) -> None:
    bucket.create("a/b", b"first")
    with pytest.raises(AlreadyExists) as caught:
        bucket.create("a/b", b"second")
    assert caught.value.key == "a/b"
    assert bucket.get("a/b") == b"first"


def test_an_object_can_be_replaced_as_a_whole(bucket: Bucket) -> None:
    bucket.replace("cache", b"a long first value")
    bucket.replace("cache", b"short")
    assert bucket.get("cache") == b"short"


def test_what_is_not_there_reads_as_none_and_deletes_silently(bucket: Bucket) -> None:
    assert bucket.get("nothing") is None
    assert bucket.list("nothing") == []
    bucket.delete("nothing")


def test_keys_are_listed_sorted_by_whole_segments(bucket: Bucket) -> None:
    for key in ("lock/b/2", "lock/b/1", "lock/bb/1", "other"):
        bucket.create(key, b"")
    assert bucket.list("lock/b") == ["lock/b/1", "lock/b/2"]
    assert bucket.list("lock/b", "lock/b/1") == ["lock/b/2"]


def test_a_deleted_object_can_be_created_again(bucket: Bucket) -> None:
    bucket.create("a", b"1")
    bucket.delete("a")
    bucket.create("a", b"2")
    assert bucket.get("a") == b"2"


def test_reading_creates_no_directory(url: str, directory: Path) -> None:
    bucket = connect(url)
    assert bucket.get("a") is None
    assert bucket.list("a") == []
    bucket.delete("a")
    assert not directory.exists()


def test_the_directory_is_0700_and_its_files_are_0600(url: str, directory: Path) -> None:
    bucket = connect(url)
    bucket.create("created", b"")
    bucket.replace("deep/replaced", b"")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert len(files) == 2


@pytest.mark.parametrize(
    ("bad", "instead"),
    [
        ("/plain/path", "file:///PATH"),
        ("file://relative/path", "three slashes"),
        ("s3://UPPER/x", "s3://BUCKET/PREFIX"),
        ("azblob://account", "azblob://ACCOUNT/CONTAINER"),
        ("s3://bucket/x?endpont=http://here", "endpoint"),
        ("gs://bucket?region=here", "nothing"),
    ],
)
def test_a_url_that_names_no_place_is_refused_with_a_hint(bad: str, instead: str) -> None:
    with pytest.raises(LifecycleError) as caught:
        connect(bad)
    assert bad in caught.value.diagnostics[0].summary
    assert instead in caught.value.diagnostics[0].hint


def test_a_path_that_is_a_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LifecycleError) as caught:
        connect(f"file://{tmp_path}/file")
    assert str(tmp_path / "file") in caught.value.diagnostics[0].summary


@pytest.mark.parametrize("place", ["/proc/gcluster-state", "/dev/null/state"])
def test_a_path_that_cannot_be_made_is_refused_by_name(place: str) -> None:
    with pytest.raises(LifecycleError) as caught:
        connect(f"file://{place}").create("a", b"")
    assert place in caught.value.diagnostics[0].summary
    assert caught.value.diagnostics[0].code == "GC901"


def test_a_key_below_a_file_is_an_error_that_names_the_key(url: str) -> None:
    bucket = connect(url)
    bucket.create("a", b"")
    for act in (lambda: bucket.create("a/b", b""), lambda: bucket.get("a/b")):
        with pytest.raises(LifecycleError) as caught:
            act()
        assert "a/b" in caught.value.diagnostics[0].summary
        assert "\n" not in caught.value.diagnostics[0].detail


def test_a_directory_that_vanishes_while_in_use_is_recreated_private(
    url: str, directory: Path
) -> None:
    bucket = connect(url)
    bucket.create("a", b"")
    (directory / "a").unlink()
    directory.rmdir()
    bucket.create("b", b"")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


KINDS = [
    "s3",
    pytest.param("azure", marks=pytest.mark.stores),
    pytest.param("gcs", marks=pytest.mark.stores),
]


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Run one kind of store for all tests of the file."""
    with STORES[request.param]() as running:
        yield running


@pytest.fixture
def cloud_url(
    server: tuple[str, str, dict[str, str]],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Return a state URL of its own for each test; the environment has the rights."""
    begin, query, environment = server
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return f"{begin}/{request.node.originalname}{query}"


@pytest.fixture
def bucket(cloud_url: str) -> Bucket:
    """Return the store of that URL."""
    return connect(cloud_url)


def test_an_object_is_replaced_as_a_whole_deleted_and_recreated(bucket: Bucket) -> None:
    bucket.replace("cache", b"a long first value")
    bucket.replace("cache", b"short")
    assert bucket.get("cache") == b"short"
    bucket.delete("cache")
    bucket.delete("cache")
    assert bucket.get("cache") is None
    bucket.create("cache", b"again")
    assert bucket.get("cache") == b"again"


def test_damage_in_a_bucket_is_found_and_named(cloud_url: str) -> None:
    store = StateStore.open(cloud_url)
    store.identify("demo")
    log = EventLog(store)
    for number in range(3):
        log.append(StageDone(stage=str(number), ok=True))
    raw = connect(cloud_url)
    raw.delete("events/000000000002.json")
    raw.replace("cluster.json", b"")
    raw.replace("certificate.json", b'{"verdict": "pass"}')
    checked = check_state(StateStore.open(cloud_url, checks_format=False))
    assert {item.key: item.problem for item in checked.damage} == {
        "certificate.json": "it has no hash",
        "cluster.json": "it is empty",
        "events/000000000002.json": "it is missing",
    }


def test_keys_are_listed_sorted_by_whole_segments_and_after_one(bucket: Bucket) -> None:
    for key in ("lock/b/2", "lock/b/1", "lock/bb/1", "other"):
        bucket.create(key, b"x")
    assert bucket.list("lock/b") == ["lock/b/1", "lock/b/2"]
    assert bucket.list("lock/b", "lock/b/1") == ["lock/b/2"]
    assert bucket.list("nothing") == []


def test_a_bucket_that_is_not_there_is_no_empty_state(cloud_url: str) -> None:
    elsewhere = cloud_url.replace("acme-gcluster", "nobody-has-it").replace(
        "1/gcluster/", "1/none/"
    )
    with pytest.raises(LifecycleError) as caught:
        StateStore.open(elsewhere)
    (message,) = caught.value.diagnostics
    assert message.code == "GC901"
    assert "check" in message.hint
    assert "\n" not in message.summary


def test_a_cluster_has_one_id_and_one_log_on_every_machine(cloud_url: str) -> None:
    first, second = StateStore.open(cloud_url), StateStore.open(cloud_url)
    assert first.identify("demo") == second.identify("demo")
    EventLog(first).append(StageDone(stage="a", ok=True))
    EventLog(second).append(StageDone(stage="b", ok=True))
    assert [event.seq for event in EventLog(first).read()] == [1, 2]


def test_twenty_processes_never_hold_it_at_once_and_lose_no_turn(
    cloud_url: str, tmp_path: Path, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    actors = [start_actor("race", cloud_url, "2", str(counter), "1") for _ in range(20)]
    assert [actor.stdout.readline() for actor in actors if actor.stdout] == ["ready\n"] * 20
    (tmp_path / "counter.go").touch()
    assert [actor.wait() for actor in actors] == [0] * 20
    assert counter.read_text() == "40"
    keys = connect(cloud_url).list("lock/site")
    epochs = [key for key in keys if not key.endswith(".released")]
    assert epochs == [f"lock/site/{epoch:06d}" for epoch in range(1, 41)]
    assert len(keys) == 80
