"""Secrets as files: private while they are needed, gone afterwards, swept after a kill."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.state.secret_files import secret_files


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    return place


def test_files_are_0600_in_a_0700_directory_of_their_own(memory: Path) -> None:
    with secret_files({"munge": b"one", "jwt": b"two"}) as files:
        assert {name: path.read_bytes() for name, path in files.items()} == {
            "munge": b"one",
            "jwt": b"two",
        }
        assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
        (directory,) = memory.iterdir()
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_nothing_is_left_however_the_body_ends(memory: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), secret_files({"munge": b"secret"}):
        raise error
    assert list(memory.iterdir()) == []


def test_without_a_runtime_directory_they_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/does/not/exist")
    with secret_files({"munge": b"secret"}) as files:
        assert files["munge"].is_relative_to("/dev/shm")  # noqa: S108 - where memory is


def test_what_a_killed_process_left_is_swept_and_what_a_running_one_needs_is_not(
    url: str, memory: Path, tmp_path: Path, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    keys = str(tmp_path / "keys")
    killed, running = (start_actor("materialise", url, keys) for _ in range(2))
    for actor in (killed, running):
        assert actor.stdout is not None
        assert actor.stdout.readline() == "ready\n"
    killed.kill()
    killed.wait()
    assert len(list(memory.iterdir())) == 2
    with secret_files({}):
        pass
    (left,) = memory.iterdir()
    assert f".{running.pid}." in left.name


def test_a_link_with_such_a_name_is_not_followed(memory: Path, tmp_path: Path) -> None:
    with secret_files({"munge": b""}) as files:
        pattern = files["munge"].parent.name
    precious = tmp_path / "precious"
    precious.mkdir()
    head, _, tail = pattern.rpartition(".")
    parts = head.split(".")
    parts[3:5] = ["4194305", "1"]  # a pid above the kernel's largest: never runs
    (memory / ".".join([*parts, tail])).symlink_to(precious)
    with secret_files({}):
        pass
    assert precious.exists()
    assert len(list(memory.iterdir())) == 1


def test_a_place_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, memory: Path
) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)  # a full tmpfs can't be had without root
    with pytest.raises(LifecycleError, match=str(memory)), secret_files({}):
        raise AssertionError
