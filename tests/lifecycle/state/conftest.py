"""Stores for the tests of state: a directory, and memory in place of a bucket in a cloud."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest
from obstore.store import MemoryStore

from gcluster.lifecycle.state import StateStore, newest_applied
from gcluster.lifecycle.state.bucket import Bucket, ObstoreBucket
from gcluster.lifecycle.state.connect import connect

from .write_case import PLACE, catalog_of_now

StartActor: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a state directory that doesn't exist yet."""
    return f"file://{tmp_path / 'state'}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory of `url`."""
    return tmp_path / "state"


@pytest.fixture(params=["directory", "memory"])
def bucket(request: pytest.FixtureRequest, url: str) -> Bucket:
    """Return each kind of bucket in turn; memory has the conditional create of the cloud stores."""
    return connect(url) if request.param == "directory" else ObstoreBucket(MemoryStore(), "memory")


@pytest.fixture
def store(bucket: Bucket) -> StateStore:
    """Return state in each kind of bucket in turn."""
    return StateStore(bucket, url="test")


@pytest.fixture
def start_actor() -> Iterator[StartActor]:
    """Return a function that starts actor.py as a process of its own; all end with the test."""
    with ExitStack() as running:

        def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent / "actor.py"), *arguments],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            )
            running.enter_context(process)
            running.callback(process.kill)
            return process

        yield start


@pytest.fixture
def kept_spec(kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the spec that was applied, of the state that a module's `kept` names.

    Its catalog has the fields that are required since: `validate` names them.
    """
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    applied = newest_applied(StateStore.open(kept))
    assert applied is not None
    (tmp_path / "ours.yaml").write_bytes(catalog_of_now(applied.catalogs["00.yaml"]))
    spec = tmp_path / "cluster.yaml"
    spec.write_text(applied.spec.replace(PLACE, kept), encoding="utf-8")
    return spec
