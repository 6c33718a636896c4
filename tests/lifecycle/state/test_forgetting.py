"""Who forgets a cluster's secrets and is held up doing it deletes nothing of those who go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from gcluster.lifecycle.outcome import LifecycleError, failure
from gcluster.lifecycle.state import SecretVault, StateStore
from gcluster.lifecycle.state.bucket import Bucket, ObstoreBucket
from gcluster.lifecycle.state.reencrypt import in_use, take_over
from gcluster.schemas.spec.secrets import AgeSecrets

from .killing import Killed, KillingBucket, PausingBucket

KEPT, OTHER = b"planted passphrase", b"planted munge key"
MOMENTS = range(8)
"""Changes that forgetting makes: two marks or fewer, six deletions or fewer."""


@pytest.fixture
def bucket() -> Bucket:
    """Return memory alone: what is tested is the order of writes."""
    return ObstoreBucket(MemoryStore(), "memory")


def _vault(bucket: Bucket, keys: Path, secrets: AgeSecrets | None = None) -> SecretVault:
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
    vault = _vault(bucket, keys)
    take_over(StateStore(bucket, url="test"), vault.keyring)
    vault.prove()
    for name in ("stacks", "munge"):
        vault.ensure(name, lambda: b"planted later")


@pytest.mark.parametrize("but", ["", "stacks"])
@pytest.mark.parametrize("ended_first", [False, True], ids=["goes on", "ended and begun anew"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_whoever_goes_on_keeps_all_that_is_made(
    bucket: Bucket, tmp_path: Path, moment: int, ended_first: bool, but: str
) -> None:
    lost: list[str] = []

    def others() -> None:
        lost.append("lock")
        if ended_first:
            _vault(bucket, tmp_path).forget_all(_held, but=but)
        _go_on_with(bucket, tmp_path)

    def go_on() -> None:
        if lost:
            raise failure("GC904", "this run has lost the lock")

    _fill(_vault(bucket, tmp_path))
    held_up = _vault(PausingBucket(bucket, moment, others), tmp_path)
    try:
        held_up.forget_all(go_on, but=but)
    except LifecycleError as error:
        assert lost, error  # noqa: PT017  # it may have been in time
    if not lost:
        others()

    vault = _vault(bucket, tmp_path)
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
    _fill(_vault(bucket, tmp_path))
    try:
        _vault(KillingBucket(bucket, moment), tmp_path).forget_all(_held, but=but)
    except Killed:
        _vault(bucket, tmp_path).forget_all(_held, but=but)
    vault = _vault(bucket, tmp_path)
    vault.prove()
    if but:
        assert vault.reveal("stacks") == KEPT
        assert all(key.startswith("secrets/stacks/") for key in bucket.list("secrets"))
    else:
        assert bucket.list("secrets") == []
    _go_on_with(bucket, tmp_path)
    assert len(in_use(StateStore(bucket, url="test"), vault.keyring)) == 1


def test_where_one_secret_stays_its_identity_stays_the_one_that_was_backed_up(
    bucket: Bucket, tmp_path: Path
) -> None:
    _fill(_vault(bucket, tmp_path))
    (identity,) = tmp_path.iterdir()
    before = identity.read_bytes()
    _vault(bucket, tmp_path).forget_all(_held, but="stacks")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]
    assert _vault(bucket, tmp_path).reveal("stacks") == KEPT
    before_again = bucket.list("keyring")
    _vault(bucket, tmp_path).forget_all(_held, but="stacks")
    assert bucket.list("keyring") == before_again


def test_a_user_whose_key_is_lost_can_still_end_the_cluster(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyrage  # noqa: PLC0415  # here alone

    monkeypatch.setenv("OLD_KEY", str(pyrage.x25519.Identity.generate()))
    vault = _vault(bucket, tmp_path, AgeSecrets(key="env:OLD_KEY"))
    _fill(vault)
    monkeypatch.delenv("OLD_KEY")
    _vault(bucket, tmp_path, AgeSecrets(key="env:OLD_KEY")).forget_all(_held)
    assert bucket.list("secrets") == []


def test_what_a_late_process_still_writes_for_a_forgotten_key_is_nobodys(
    bucket: Bucket, tmp_path: Path
) -> None:
    def overtaken() -> bytes:
        _vault(bucket, tmp_path).forget_all(_held)
        return b"too late"

    late = _vault(bucket, tmp_path)
    late.ensure("stacks", lambda: KEPT)
    with pytest.raises(LifecycleError, match="no secret munge"):
        late.ensure("munge", overtaken)
    assert bucket.list("secrets") == ["secrets/munge/000001.000001.json"]
    vault = _vault(bucket, tmp_path)
    assert vault.version("munge") is None
    vault.ensure("munge", lambda: OTHER)
    assert vault.reveal("munge") == OTHER
