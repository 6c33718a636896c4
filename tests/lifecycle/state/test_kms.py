"""A cluster's data key under AWS KMS: moto stands for AWS, over HTTP as the SDK speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
from botocore.stub import Stubber
from moto.server import ThreadedMotoServer
from tests.lifecycle.planted import spellings

from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.state import SecretVault, StateStore
from gcluster.lifecycle.state.ciphertexts import Ciphertext
from gcluster.lifecycle.state.key_record import KeyRecord
from gcluster.lifecycle.state.reencrypt import reencrypt
from gcluster.schemas.spec.secrets import KmsSecrets
from gcluster.stacks.aws import kms
from gcluster.stacks.aws.api import Api
from gcluster.stacks.provider import ProviderError

PLAIN = b"planted-0c9b1f munge key"
NOBODY = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def aws(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return moto's KMS, which all of AWS is for the test."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    return boto3.client("kms", region_name="us-east-1")


def _vault(directory: Path, key: str, cluster: str = "one") -> SecretVault:
    store = StateStore.open(f"file://{directory}")
    return SecretVault.open(store, KmsSecrets(key=key), cluster, Path("/nowhere"))


def _key(aws: Any) -> str:
    return str(aws.create_key()["KeyMetadata"]["Arn"])


def _refused(vault: SecretVault) -> LifecycleError:
    with pytest.raises(LifecycleError) as caught:
        vault.prove()
    return caught.value


def test_secrets_are_ciphertext_that_only_the_key_opens(aws: Any, tmp_path: Path) -> None:
    key = _key(aws)
    _vault(tmp_path / "s", key).ensure("munge", lambda: PLAIN)
    assert _vault(tmp_path / "s", key).reveal("munge") == PLAIN

    stored = {p.name: p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file()}
    for data in stored.values():
        assert not [said for said in spellings(PLAIN) if said in data]
        assert b"AGE-SECRET-KEY" not in data
    (record,) = (tmp_path / "s" / "keyring").iterdir()
    wrapped = msgspec.json.decode(record.read_bytes(), type=KeyRecord)
    assert (wrapped.provider, wrapped.wrapped_for) == ("kms", (key,))
    (munge,) = (tmp_path / "s" / "secrets" / "munge").iterdir()
    box = msgspec.json.decode(munge.read_bytes(), type=Ciphertext).box
    assert box.startswith(b"age-encryption.org/v1\n-> X25519 ")
    # The very words of KMS: its own Decrypt gives the data key back, for this cluster alone.
    given = aws.decrypt(
        CiphertextBlob=wrapped.wrapped, EncryptionContext={"gcluster:cluster": "one"}
    )
    assert given["Plaintext"].startswith(b"AGE-SECRET-KEY-1")


def test_what_was_encrypted_for_one_cluster_opens_for_no_other(aws: Any, tmp_path: Path) -> None:
    key = _key(aws)
    _vault(tmp_path / "s", key).ensure("munge", lambda: PLAIN)
    error = _refused(_vault(tmp_path / "s", key, cluster="two"))
    assert error.diagnostics[0].code == "GC905"


def test_a_key_that_is_not_there_is_said_before_anything_is_kept(aws: Any, tmp_path: Path) -> None:
    del aws
    error = _refused(_vault(tmp_path / "s", NOBODY))
    assert error.diagnostics[0].code == "GC1160"
    assert NOBODY in error.diagnostics[0].summary
    with pytest.raises(LifecycleError):
        _vault(tmp_path / "s", NOBODY).ensure("munge", lambda: PLAIN)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("DisabledException", "GC1160"),
        ("KMSInvalidStateException", "GC1160"),
        ("AccessDeniedException", "GC1161"),
    ],
)
def test_a_key_that_is_off_and_rights_that_lack_are_told_apart(word: str, code: str) -> None:
    """A double of botocore answers: moto minds neither the state of keys nor rights on them."""
    api = Api("us-east-1", endpoint_url="http://127.0.0.1:9")
    with Stubber(api.client("kms")) as double:
        double.add_client_error("encrypt", word, "words of theirs")
        with pytest.raises(ProviderError) as caught:
            kms.wrap(NOBODY, b"x", "one", api)
    told = caught.value.diagnostics[0]
    assert told.code == code
    assert ("kms:Encrypt and kms:Decrypt" in told.hint) == (code == "GC1161")
    assert "words of theirs" in told.detail


def test_secrets_move_from_one_key_to_another_and_need_the_first_no_more(
    aws: Any, tmp_path: Path
) -> None:
    first, second = _key(aws), _key(aws)
    version = _vault(tmp_path / "s", first).ensure("munge", lambda: PLAIN)
    moved = _vault(tmp_path / "s", second)
    reencrypt(StateStore.open(f"file://{tmp_path}/s"), moved.keyring)
    (record,) = (tmp_path / "s" / "keyring").iterdir()
    assert first.encode() not in record.read_bytes()
    again = _vault(tmp_path / "s", second)
    assert again.reveal("munge") == PLAIN
    assert again.version("munge") == version.id
