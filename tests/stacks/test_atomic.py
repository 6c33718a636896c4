"""Files that several processes share."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gcluster.stacks.io import atomic


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "nodes.json"
    atomic.write(target, b"old")

    def refuse(_: Path, __: Path) -> None:
        raise OSError

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", refuse)
        with pytest.raises(OSError):  # noqa: PT011  # any error of the disk
            atomic.write(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_of_many_writers_each_adds_its_own(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    atomic.write(counter, b"0")

    def add(_: int) -> None:
        with atomic.locked(tmp_path / "lock"):
            atomic.write(counter, str(int(counter.read_bytes()) + 1).encode())

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(add, range(100)))
    assert counter.read_bytes() == b"100"
