"""What an add-on is made of is what its digest says, wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.publisher import Publisher, digest, get, published

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.kubernetes.addons.artefact import artefact
from gcluster.schemas.catalog import Addon

from .lab import entry

CHART = b"a chart"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gcluster" / "addons"


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with published() as content:
        yield content


def addon(publisher: Publisher, **answer: object) -> Addon:
    return msgspec.convert(entry(publisher, "widgets", CHART) | answer, Addon)


def refused(requested: Addon, bundle: Path | None = None) -> str:
    with pytest.raises(LifecycleError) as error:
        artefact(requested, bundle, get)
    (message,) = error.value.diagnostics
    assert (message.code, error.value.exit_code) == ("GC1060", Exit.REFUSED)
    return message.summary


def test_it_is_fetched_once_and_not_queried_again(publisher: Publisher, cache: Path) -> None:
    requested = addon(publisher)
    assert artefact(requested) == CHART
    assert [path.read_bytes() for path in cache.iterdir()] == [CHART]
    publisher.calls.clear()
    assert artefact(requested) == CHART
    assert publisher.calls == []


def test_a_cache_that_was_damaged_is_fetched_again(publisher: Publisher, cache: Path) -> None:
    requested = addon(publisher)
    artefact(requested)
    (kept,) = cache.iterdir()
    kept.write_bytes(b"something else")
    assert artefact(requested) == CHART
    assert kept.read_bytes() == CHART


def test_what_was_published_again_is_refused_and_not_kept(
    publisher: Publisher, cache: Path
) -> None:
    requested = addon(publisher, digest=digest(b"as it was"))
    assert digest(CHART) in refused(requested)
    assert not cache.exists()


def test_where_is_not_published_it_the_hint_is_a_bundle(publisher: Publisher) -> None:
    requested = addon(publisher, version="2.0.0")
    assert "widgets 2.0.0 can't be had" in refused(requested)


def test_from_a_bundle_no_publisher_is_queried(publisher: Publisher, tmp_path: Path) -> None:
    folder = tmp_path / "bundle" / "files" / "addons"
    folder.mkdir(parents=True)
    assert "is not there" in refused(addon(publisher), tmp_path / "bundle")
    (folder / "widgets-1.0.0.tgz").write_bytes(CHART)
    publisher.calls.clear()
    assert artefact(addon(publisher), tmp_path / "bundle") == CHART
    assert publisher.calls == []
