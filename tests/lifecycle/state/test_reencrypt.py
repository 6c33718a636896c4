"""Another key for what is stored encrypted: at every write all is readable, and it can go on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyrage
import pytest
from obstore.store import MemoryStore

from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.state import SecretVault, StateStore
from gcluster.lifecycle.state.bucket import Bucket, ObstoreBucket
from gcluster.lifecycle.state.ciphertexts import Ciphertext
from gcluster.lifecycle.state.reencrypt import reencrypt
from gcluster.schemas.spec.secrets import AgeSecrets

from .killing import Killed, KillingBucket

VALUES = {"munge": b"planted munge key", "jwt": b"planted jwt key"}
QUEUE = b"planted queue"
OLD, NEW = AgeSecrets(key="env:OLD_KEY"), AgeSecrets(key="env:NEW_KEY")


@pytest.fixture
def bucket() -> Bucket:
    """Return memory alone: what is tested is the order of writes."""
    return ObstoreBucket(MemoryStore(), "memory")


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OLD_KEY", "NEW_KEY"):
        monkeypatch.setenv(name, str(pyrage.x25519.Identity.generate()))


def _vault(bucket: Bucket, secrets: AgeSecrets | None, keys: Path) -> SecretVault:
    return SecretVault.open(StateStore(bucket, url="test"), secrets, "id", keys)


def _filled(bucket: Bucket, secrets: AgeSecrets | None, keys: Path) -> dict[str, str | None]:
    vault = _vault(bucket, secrets, keys)
    for name, value in VALUES.items():
        vault.keep(name, b"planted first")
        vault.keep(name, value)
    vault.seal("queue/saved", QUEUE)
    return {name: vault.version(name) for name in VALUES}


def _rotate(bucket: Bucket, secrets: AgeSecrets | None, keys: Path) -> None:
    reencrypt(StateStore(bucket, url="test"), _vault(bucket, secrets, keys).keyring)


def _is_whole(vault: SecretVault, versions: dict[str, str | None]) -> None:
    assert {name: vault.reveal(name) for name in VALUES} == VALUES
    assert {name: vault.version(name) for name in VALUES} == versions
    assert vault.unseal("queue/saved", "the queue") == QUEUE


def test_secrets_keep_their_versions_and_the_old_key_opens_nothing_more(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = _filled(bucket, OLD, tmp_path)
    before = {name: bucket.get(name) for name in bucket.list("secrets")}
    _rotate(bucket, NEW, tmp_path)
    monkeypatch.delenv("OLD_KEY")

    _is_whole(_vault(bucket, NEW, tmp_path), versions)
    # Whoever opens it by what was applied before: the state says itself where the key is.
    _is_whole(_vault(bucket, OLD, tmp_path), versions)
    assert bucket.list("keyring") == ["keyring/000002.json"]
    assert not set(bucket.list("secrets")) & set(before)
    monkeypatch.delenv("NEW_KEY")
    with pytest.raises(LifecycleError, match="NEW_KEY"):
        _vault(bucket, NEW, tmp_path).reveal("munge")


def test_all_versions_get_another_ciphertext(bucket: Bucket, tmp_path: Path) -> None:
    _filled(bucket, OLD, tmp_path)
    before = {_box(bucket, path) for path in bucket.list("secrets")}
    _rotate(bucket, OLD, tmp_path)
    after = {_box(bucket, path) for path in bucket.list("secrets")}
    assert len(before) == len(after) == 4
    assert not before & after


def _box(bucket: Bucket, path: str) -> bytes:
    return msgspec.json.decode(bucket.get(path) or b"", type=Ciphertext).box


@pytest.mark.parametrize("again", [NEW, OLD])
def test_killed_at_any_write_all_is_readable_and_it_can_go_on_or_back(
    tmp_path: Path, again: AgeSecrets
) -> None:
    finished = False
    for changes in range(40):
        bucket = ObstoreBucket(MemoryStore(), "memory")
        versions = _filled(bucket, OLD, tmp_path)
        try:
            _rotate(KillingBucket(bucket, changes), NEW, tmp_path)
        except Killed:
            for secrets in (OLD, NEW):
                _is_whole(_vault(bucket, secrets, tmp_path), versions)
        else:
            finished = True
        _rotate(bucket, again, tmp_path)
        _is_whole(_vault(bucket, again, tmp_path), versions)
        assert len(bucket.list("keyring")) == 1
        assert len(bucket.list("secrets")) == 4
        if finished:
            break
    assert changes > 10


def test_one_that_was_killed_makes_no_second_data_key(bucket: Bucket, tmp_path: Path) -> None:
    _filled(bucket, OLD, tmp_path)
    with pytest.raises(Killed):
        _rotate(KillingBucket(bucket, 2), NEW, tmp_path)
    begun = bucket.get("keyring/000002.json")
    _rotate(bucket, NEW, tmp_path)
    assert bucket.list("keyring") == ["keyring/000002.json"]
    assert bucket.get("keyring/000002.json") == begun


def test_without_the_old_key_or_the_new_one_nothing_is_changed(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(bucket, OLD, tmp_path)
    before = {path: bucket.get(path) for path in bucket.list("secrets") + bucket.list("keyring")}
    for missing in ("OLD_KEY", "NEW_KEY"):
        with monkeypatch.context() as context:
            context.delenv(missing)
            with pytest.raises(LifecycleError) as caught:
                _rotate(bucket, NEW, tmp_path)
        assert caught.value.diagnostics[0].code == "GC905"
    after = {path: bucket.get(path) for path in bucket.list("secrets") + bucket.list("keyring")}
    assert after == before


def test_the_clusters_own_identity_goes_when_nothing_needs_it(
    bucket: Bucket, tmp_path: Path
) -> None:
    versions = _filled(bucket, None, tmp_path / "keys")
    _rotate(bucket, None, tmp_path / "keys")
    assert (tmp_path / "keys" / "id.key").exists()
    _is_whole(_vault(bucket, None, tmp_path / "keys"), versions)
    _rotate(bucket, NEW, tmp_path / "keys")
    assert not (tmp_path / "keys" / "id.key").exists()
    _is_whole(_vault(bucket, NEW, tmp_path / "keys"), versions)


def test_what_a_holder_of_a_lost_lock_still_writes_by_the_old_key_harms_nothing(
    bucket: Bucket, tmp_path: Path
) -> None:
    versions = _filled(bucket, OLD, tmp_path)
    stale = bucket.get("secrets/munge/000002.000001.json") or b""
    _rotate(bucket, NEW, tmp_path)
    for number in (2, 3):
        bucket.create(f"secrets/munge/{number:06d}.000001.json", stale)
    _is_whole(_vault(bucket, NEW, tmp_path), versions)


def test_secrets_without_any_key_record_are_not_made_anew(bucket: Bucket, tmp_path: Path) -> None:
    _filled(bucket, OLD, tmp_path)
    bucket.delete("keyring/000001.json")
    vault = _vault(bucket, OLD, tmp_path)
    with pytest.raises(LifecycleError, match="secrets are there"):
        vault.ensure("munge", lambda: b"another")


def test_a_cluster_without_secrets_has_nothing_to_change(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(LifecycleError, match="no secrets yet"):
        _rotate(bucket, NEW, tmp_path)
