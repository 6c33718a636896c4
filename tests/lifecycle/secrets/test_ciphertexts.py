"""Another key for what is stored encrypted: at every write all is readable, and it can go on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyrage
import pytest
from obstore.store import MemoryStore
from tests.lifecycle.state.killing import Killed, KillingBucket, PausingBucket

from gcluster.lifecycle.cluster.outcome import LifecycleError, failure
from gcluster.lifecycle.secrets.ciphertexts import (
    Ciphertext,
    finish_interrupted_removal,
    keys_in_use,
    reencrypt,
)
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.lifecycle.state.bucket import Bucket, ObstoreBucket
from gcluster.schemas.spec.secrets import AgeSecrets

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
    # Opened with the spec applied before: the state itself says where the key is.
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
def test_killed_at_any_write_all_is_readable_and_it_can_continue_or_back(
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


def test_secrets_without_any_key_record_are_not_recreated(bucket: Bucket, tmp_path: Path) -> None:
    _filled(bucket, OLD, tmp_path)
    bucket.delete("keyring/000001.json")
    vault = _vault(bucket, OLD, tmp_path)
    with pytest.raises(LifecycleError, match="secrets are there"):
        vault.ensure("munge", lambda: b"another")


def test_a_cluster_without_secrets_has_nothing_to_change(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(LifecycleError, match="no secrets yet"):
        _rotate(bucket, NEW, tmp_path)


KEPT, OTHER = b"planted passphrase", b"planted munge key"
MOMENTS = range(8)
"""Changes that forgetting makes: two marks or fewer, six deletions or fewer."""


def _vault_forgetting(bucket: Bucket, keys: Path, secrets: AgeSecrets | None = None) -> SecretVault:
    return SecretVault.open(StateStore(bucket, url="test"), secrets, "id", keys)


def _fill(vault: SecretVault) -> None:
    vault.keep("stacks", b"planted first")
    vault.keep("stacks", KEPT)
    vault.ensure("munge", lambda: OTHER)
    vault.seal("queue/saved", b"planted queue")


def _held() -> None:
    """Still hold the lock."""


def _go_on_with(bucket: Bucket, keys: Path) -> None:
    """Do what a run does that has the lock and goes on with the cluster."""
    vault = _vault_forgetting(bucket, keys)
    finish_interrupted_removal(StateStore(bucket, url="test"), vault.keyring)
    vault.prove()
    for name in ("stacks", "munge"):
        vault.ensure(name, lambda: b"planted later")


@pytest.mark.parametrize("but", ["", "stacks"])
@pytest.mark.parametrize("ended_first", [False, True], ids=["goes on", "ended and begun again"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_those_who_continues_keeps_all_that_is_made(
    bucket: Bucket, tmp_path: Path, moment: int, ended_first: bool, but: str
) -> None:
    lost: list[str] = []

    def others() -> None:
        lost.append("lock")
        if ended_first:
            _vault_forgetting(bucket, tmp_path).forget_all(_held, but=but)
        _go_on_with(bucket, tmp_path)

    def go_on() -> None:
        if lost:
            raise failure("GC904", "this run has lost the lock")

    _fill(_vault_forgetting(bucket, tmp_path))
    held_up = _vault_forgetting(PausingBucket(bucket, moment, others), tmp_path)
    try:
        held_up.forget_all(go_on, but=but)
    except LifecycleError as error:
        assert lost, error  # noqa: PT017  # it may have been in time
    if not lost:
        others()

    vault = _vault_forgetting(bucket, tmp_path)
    vault.prove()
    values = {vault.reveal("stacks"), vault.reveal("munge")}
    assert values <= {KEPT, OTHER, b"planted later"}
    if but:
        assert vault.reveal("stacks") == KEPT
    _go_on_with(bucket, tmp_path)
    assert {vault.reveal("stacks"), vault.reveal("munge")} == values
    vault.forget_all(_held)
    assert all(key.endswith((".ended", ".moved")) for key in bucket.list("keyring"))
    assert bucket.list("secrets") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("but", ["", "stacks"])
@pytest.mark.parametrize("moment", range(12))
def test_forgetting_that_was_killed_is_finished_or_gone_on_from(
    bucket: Bucket, tmp_path: Path, moment: int, but: str
) -> None:
    _fill(_vault_forgetting(bucket, tmp_path))
    try:
        _vault_forgetting(KillingBucket(bucket, moment), tmp_path).forget_all(_held, but=but)
    except Killed:
        _vault_forgetting(bucket, tmp_path).forget_all(_held, but=but)
    vault = _vault_forgetting(bucket, tmp_path)
    vault.prove()
    if but:
        assert vault.reveal("stacks") == KEPT
        assert all(key.startswith("secrets/stacks/") for key in bucket.list("secrets"))
    else:
        assert bucket.list("secrets") == []
    _go_on_with(bucket, tmp_path)
    assert len(keys_in_use(StateStore(bucket, url="test"), vault.keyring)) == 1


def test_where_one_secret_stays_its_identity_stays_the_one_that_was_backed_up(
    bucket: Bucket, tmp_path: Path
) -> None:
    _fill(_vault_forgetting(bucket, tmp_path))
    (identity,) = tmp_path.iterdir()
    before = identity.read_bytes()
    _vault_forgetting(bucket, tmp_path).forget_all(_held, but="stacks")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]
    assert _vault_forgetting(bucket, tmp_path).reveal("stacks") == KEPT
    before_again = bucket.list("keyring")
    _vault_forgetting(bucket, tmp_path).forget_all(_held, but="stacks")
    assert bucket.list("keyring") == before_again


def test_a_user_whose_key_is_lost_can_still_end_the_cluster(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyrage  # noqa: PLC0415  # here alone

    monkeypatch.setenv("OLD_KEY", str(pyrage.x25519.Identity.generate()))
    vault = _vault_forgetting(bucket, tmp_path, AgeSecrets(key="env:OLD_KEY"))
    _fill(vault)
    monkeypatch.delenv("OLD_KEY")
    _vault_forgetting(bucket, tmp_path, AgeSecrets(key="env:OLD_KEY")).forget_all(_held)
    assert bucket.list("secrets") == []


def test_what_a_late_process_still_writes_for_a_deleted_key_is_unused(
    bucket: Bucket, tmp_path: Path
) -> None:
    def overtaken() -> bytes:
        _vault_forgetting(bucket, tmp_path).forget_all(_held)
        return b"too late"

    late = _vault_forgetting(bucket, tmp_path)
    late.ensure("stacks", lambda: KEPT)
    with pytest.raises(LifecycleError, match="no secret munge"):
        late.ensure("munge", overtaken)
    assert bucket.list("secrets") == ["secrets/munge/000001.000001.json"]
    vault = _vault_forgetting(bucket, tmp_path)
    assert vault.version("munge") is None
    vault.ensure("munge", lambda: OTHER)
    assert vault.reveal("munge") == OTHER
