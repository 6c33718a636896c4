"""Secrets in the state: made once, only as ciphertext, and gone when they are dropped."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.secrets.ciphertexts import Ciphertext
from gcluster.lifecycle.secrets.vault import SecretVault, munge_key, secret_files
from gcluster.lifecycle.state import StateStore
from gcluster.lifecycle.state.bucket import Bucket

PLAIN = b"the plaintext of the secret"


def _held() -> None:
    """Still hold the lock."""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def vault(store: StateStore, keys: Path) -> SecretVault:
    return SecretVault.open(store, None, "id", keys)


def test_a_secret_is_made_once_and_revealed(vault: SecretVault) -> None:
    first = vault.ensure("munge", lambda: PLAIN)
    assert vault.ensure("munge", lambda: b"another") == first
    assert vault.reveal("munge") == PLAIN
    assert (first.name, first.number) == ("munge", 1)


def test_opening_a_vault_makes_neither_key_nor_object(
    vault: SecretVault, store: StateStore, keys: Path
) -> None:
    assert vault.version("munge") is None
    assert store.list("secrets") == store.list("keyring") == []
    assert not keys.exists()


def test_no_byte_of_the_state_holds_the_plaintext_or_the_identity(
    url: str, directory: Path, keys: Path
) -> None:
    store = StateStore.open(url)
    vault = SecretVault.open(store, None, store.identify("demo").id, keys)
    vault.ensure("munge", lambda: PLAIN)
    stored = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    (kept,) = (data for path, data in stored.items() if path.parent.name == "munge")
    assert msgspec.json.decode(kept, type=Ciphertext).box.startswith(b"age-encryption.org/v1")
    for data in (*stored.values(), repr(vault).encode()):
        assert PLAIN not in data
        assert b"AGE-SECRET-KEY" not in data


def test_the_version_is_safe_to_show_and_needs_no_key(
    vault: SecretVault, store: StateStore, keys: Path
) -> None:
    made = vault.ensure("munge", lambda: PLAIN)
    keyless = SecretVault.open(store, None, "id", keys / "elsewhere")
    assert keyless.version("munge") == made.id
    assert made.id.startswith("munge@1.")


def test_a_secret_that_is_recreated_has_another_version(vault: SecretVault) -> None:
    before = vault.ensure("munge", lambda: PLAIN).id
    vault.forget_all(_held)
    assert vault.ensure("munge", lambda: PLAIN).id != before


def test_the_loser_of_a_race_gets_the_winners_secret(
    bucket: Bucket, store: StateStore, keys: Path
) -> None:
    winner = SecretVault.open(StateStore(bucket, url="test"), None, "id", keys)
    loser = SecretVault.open(store, None, "id", keys)

    def overtaken() -> bytes:
        winner.ensure("munge", lambda: PLAIN)
        return b"too late"

    assert loser.ensure("munge", overtaken) == winner.ensure("munge", lambda: b"")
    assert loser.reveal("munge") == PLAIN


def test_forgetting_leaves_no_ciphertext_and_no_key(
    vault: SecretVault, store: StateStore, keys: Path
) -> None:
    vault.ensure("munge", lambda: PLAIN)
    vault.ensure("jwt", lambda: PLAIN)
    vault.forget_all(_held)
    vault.forget_all(_held)
    assert store.list("secrets") == []
    assert store.list("keyring") == ["keyring/000001.ended"]
    assert list(keys.iterdir()) == []


def test_a_second_secret_is_not_made_with_another_key(
    vault: SecretVault, store: StateStore, tmp_path: Path
) -> None:
    vault.ensure("munge", lambda: PLAIN)
    lost = SecretVault.open(store, None, "id", tmp_path / "another-machine")
    with pytest.raises(LifecycleError) as caught:
        lost.ensure("jwt", lambda: PLAIN)
    assert "another-machine/id.key" in caught.value.diagnostics[0].summary
    assert not (tmp_path / "another-machine").exists()
    another = SecretVault.open(store, None, "another", tmp_path / "keys")
    SecretVault.open(StateStore.open(f"file://{tmp_path}/x"), None, "another", tmp_path / "keys")
    (tmp_path / "keys" / "another.key").write_bytes(_new_identity(tmp_path))
    with pytest.raises(LifecycleError, match="is not the key of this cluster"):
        another.ensure("jwt", lambda: PLAIN)
    assert another.version("jwt") is None


def _new_identity(tmp_path: Path) -> bytes:
    other = SecretVault.open(StateStore.open(f"file://{tmp_path}/y"), None, "y", tmp_path / "k")
    other.ensure("any", lambda: PLAIN)
    return (tmp_path / "k" / "y.key").read_bytes()


def test_a_corrupt_ciphertext_is_an_error_that_names_the_secret(
    vault: SecretVault, store: StateStore
) -> None:
    vault.ensure("munge", lambda: PLAIN)
    garbage = msgspec.json.encode(Ciphertext(fingerprint="x", box=b"garbage"))
    store.put("secrets/munge/000001.000001.json", garbage)
    with pytest.raises(LifecycleError, match="munge@1"):
        vault.reveal("munge")


def test_a_secret_that_was_never_made_is_named(vault: SecretVault) -> None:
    with pytest.raises(LifecycleError, match="no secret munge"):
        vault.reveal("munge")


@pytest.mark.parametrize("name", ["", "../escape", "a/b", ".hidden", "Upper"])
def test_a_name_that_is_no_name_is_refused(vault: SecretVault, name: str) -> None:
    with pytest.raises(ValueError, match="not a secret's name"):
        vault.ensure(name, lambda: PLAIN)


def test_secrets_become_files_for_the_body_only(
    vault: SecretVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    vault.ensure("munge", lambda: PLAIN)
    with vault.materialise(["munge"]) as files:
        assert files["munge"].read_bytes() == PLAIN
        assert files["munge"].is_relative_to(tmp_path)
    assert not files["munge"].parent.exists()


def test_a_munge_key_is_1024_bytes_and_never_the_same() -> None:
    assert len(munge_key()) == 1024
    assert munge_key() != munge_key()


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
