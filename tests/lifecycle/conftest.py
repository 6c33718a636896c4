"""What the lifecycle's tests share: places of their own on this machine, and a small cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gcluster.lifecycle.cluster import sites

from .cloud_double import PurchaseScenario
from .sample_cluster import SampleCluster


@pytest.fixture
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give gcluster folders of its own; return the one they are in."""
    for name in ("data", "config", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    # Short, as the path of a socket must be; in memory, as secrets are.
    with TemporaryDirectory(prefix="gc-", dir="/dev/shm") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield tmp_path


@pytest.fixture
def sample(own_places: Path) -> SampleCluster:
    """Give a cluster of one head and three nodes that is described and not yet there."""
    return SampleCluster(own_places / "here" / "cluster.yaml")


@pytest.fixture
def purchase(own_places: Path, monkeypatch: pytest.MonkeyPatch) -> PurchaseScenario:
    """Give a cluster whose sites are the double's."""
    sample = PurchaseScenario(own_places / "here")
    monkeypatch.setattr(sites, "provider", lambda *_: sample.cloud)
    return sample
