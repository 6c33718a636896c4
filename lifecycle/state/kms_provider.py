"""Data keys wrapped by a key of AWS KMS, Google Cloud KMS or an Azure key vault."""

from __future__ import annotations

import secrets
from importlib import import_module
from typing import Protocol, cast

from ...schemas.kms_key import cloud_of_key
from ...stacks.provider import ProviderError
from ...stacks.pulumi.extras import require
from ..outcome import LifecycleError
from .key_record import KeyRecord, damaged

_PROOF_BYTES = 32


class _Service(Protocol):
    def wrap(self, key: str, plaintext: bytes, cluster: str) -> bytes: ...

    def unwrap(self, key: str, ciphertext: bytes, cluster: str) -> bytes: ...


class KmsProvider:
    """One key, by its full name. A cloud's SDK is imported when it is first asked."""

    def __init__(self, key: str, cluster_id: str) -> None:
        """Ask nothing yet."""
        self._key = key
        self._cluster = cluster_id

    @property
    def by(self) -> str:
        """The key."""
        return f"kms ({self._key})"

    def prove(self) -> None:
        """Encrypt and decrypt a few random bytes."""
        proof = secrets.token_bytes(_PROOF_BYTES)
        record = self.wrap(proof, "")
        if self.unwrap(record) != proof:
            raise damaged(record)

    def wrap(self, identity: bytes, recipient: str) -> KeyRecord:
        """Have a data key encrypted."""
        try:
            wrapped = _service(self._key).wrap(self._key, identity, self._cluster)
        except ProviderError as error:
            raise LifecycleError(*error.diagnostics) from error
        return KeyRecord(
            recipient=recipient, provider="kms", wrapped_for=(self._key,), wrapped=wrapped
        )

    def unwrap(self, record: KeyRecord) -> bytes:
        """Have a data key decrypted by the key that the record names."""
        key = record.wrapped_for[0]
        try:
            return _service(key).unwrap(key, record.wrapped, self._cluster)
        except ProviderError as error:
            raise LifecycleError(*error.diagnostics) from error

    def is_of(self, record: KeyRecord) -> bool:
        """Compare the names."""
        return record.provider == "kms" and record.wrapped_for == (self._key,)


def _service(key: str) -> _Service:
    cloud = cloud_of_key(key)
    if cloud is None:
        raise ValueError(key)  # GC582 refuses it in specs
    require(cloud)
    return cast("_Service", import_module(f"gcluster.stacks.{cloud}.kms"))
