"""The age identity: by reference or made once; its text is in no message."""

from __future__ import annotations

import stat
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyrage
import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.secrets.age import AgeIdentity


@pytest.fixture
def identity() -> pyrage.x25519.Identity:
    return pyrage.x25519.Identity.generate()


def test_a_box_by_an_environment_variable_opens_what_it_closed(
    identity: pyrage.x25519.Identity, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THE_KEY", str(identity))
    box = AgeIdentity("env:THE_KEY")
    assert box.recipient() == str(identity.to_public())
    assert box.decrypt(box.encrypt(b"plain"), "munge") == b"plain"
    assert list(tmp_path.iterdir()) == []


def test_a_file_as_age_keygen_writes_it_is_understood(
    identity: pyrage.x25519.Identity, tmp_path: Path
) -> None:
    key = tmp_path / "age.key"
    key.write_text(f"# created: 2026\n# public key: {identity.to_public()}\n{identity}\n")
    box = AgeIdentity(f"file:{key}")
    assert box.recipient() == str(identity.to_public())


def test_a_key_file_below_the_home_directory_is_found(
    identity: pyrage.x25519.Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "age.key").write_text(str(identity))
    assert AgeIdentity("file:~/age.key").recipient() == str(identity.to_public())


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    box = AgeIdentity.generated(tmp_path / "keys" / "id.key")
    with pytest.raises(LifecycleError):
        box.recipient()
    assert not (tmp_path / "keys").exists()


def test_the_clusters_own_identity_is_made_once_and_0600(tmp_path: Path) -> None:
    first = AgeIdentity.generated(tmp_path / "keys" / "id.key")
    second = AgeIdentity.generated(tmp_path / "keys" / "id.key")
    assert first.recipient(make=True) == second.recipient(make=True)
    (key,) = (tmp_path / "keys").iterdir()
    assert key.name == "id.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def test_threads_that_make_the_identity_at_once_get_the_same(tmp_path: Path) -> None:
    def make(_: int) -> str:
        return AgeIdentity.generated(tmp_path / "keys" / "id.key").recipient(make=True)

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(make, range(8)))) == 1
    assert len(list((tmp_path / "keys").iterdir())) == 1


def test_forgetting_deletes_our_identity_and_never_a_users(
    identity: pyrage.x25519.Identity, tmp_path: Path
) -> None:
    ours = AgeIdentity.generated(tmp_path / "id.key")
    ours.recipient(make=True)
    ours.forget()
    ours.forget()
    assert list(tmp_path.iterdir()) == []
    theirs = tmp_path / "age.key"
    theirs.write_text(str(identity))
    AgeIdentity(f"file:{theirs}").forget()
    assert theirs.exists()


def test_a_missing_variable_or_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    for reference in ("env:NO_SUCH_KEY", f"file:{tmp_path}/none", f"file:{tmp_path}"):
        with pytest.raises(LifecycleError) as caught:
            AgeIdentity(reference).recipient()
        assert caught.value.diagnostics[0].code == "GC905"
        assert reference in caught.value.diagnostics[0].summary


@pytest.mark.parametrize(
    "content",
    [
        b"AGE-SECRET-KEY-1TOPSECRETANDWRONG",
        b"hunter2",
        b"",
        b"# only a comment\n",
        b"\xff\xfe\x00binary-hunter2",
        b"AGE-SECRET-KEY-1ONE\nAGE-SECRET-KEY-1TWO",
    ],
)
def test_a_malformed_identity_is_named_and_its_content_is_shown_nowhere(
    tmp_path: Path, content: bytes
) -> None:
    key = tmp_path / "age.key"
    key.write_bytes(content)
    with pytest.raises(LifecycleError) as caught:
        AgeIdentity(f"file:{key}").recipient()
    shown = "".join(traceback.format_exception(caught.value, chain=True))
    shown += repr(caught.value.diagnostics)
    assert str(key) in shown
    for secret in ("TOPSECRET", "hunter2", "1ONE", "1TWO"):
        assert secret not in shown


def test_another_key_or_a_damaged_ciphertext_is_an_error_that_names_the_secret(
    tmp_path: Path,
) -> None:
    box = AgeIdentity.generated(tmp_path / "one.key")
    other = AgeIdentity.generated(tmp_path / "two.key")
    box.recipient(make=True)
    other.recipient(make=True)
    closed = box.encrypt(b"plain")
    for opener, ciphertext in ((other, closed), (box, closed[:-1]), (box, b""), (box, b"plain")):
        with pytest.raises(LifecycleError, match="munge@1") as caught:
            opener.decrypt(ciphertext, "munge@1")
        assert caught.value.diagnostics[0].code == "GC905"


def test_the_representation_shows_the_reference_only(
    identity: pyrage.x25519.Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", str(identity))
    box = AgeIdentity("env:THE_KEY")
    box.recipient()
    assert repr(box) == "AgeIdentity('env:THE_KEY')"


def test_a_place_where_no_identity_can_be_made_is_named() -> None:
    with pytest.raises(LifecycleError, match="/dev/null/keys/id"):
        AgeIdentity.generated(Path("/dev/null/keys/id.key")).recipient(make=True)
