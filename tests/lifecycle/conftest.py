"""What the lifecycle's tests share: places of their own on this machine, and a small cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from .trial import Trial


@pytest.fixture
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give gcluster folders of its own; return the one they are in."""
    for name in ("data", "config", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    return tmp_path


@pytest.fixture
def trial(own_places: Path) -> Trial:
    """Give a cluster of one head and three nodes that is described and not yet there."""
    return Trial(own_places / "here" / "cluster.yaml")
