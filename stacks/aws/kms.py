"""A cluster's data key, encrypted by a key of AWS KMS and bound to the cluster by its context."""

from __future__ import annotations

from ..key_refusals import no_rights, no_such_key, not_wrapped_by
from .api import Answer, Api, AwsError

_ABSENT = frozenset(
    {
        "NotFoundException",
        "DisabledException",
        "KMSInvalidStateException",
        "InvalidKeyUsageException",
        "KeyUnavailableException",
    }
)
_FORBIDDEN = frozenset({"AccessDeniedException", "AccessDenied"})
_ANOTHER = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})
_RIGHTS = "kms:Encrypt and kms:Decrypt"
_CONTEXT = "gcluster:cluster"
"""Of the encryption context: what was encrypted for one cluster opens for no other."""


class _Sealed(Answer, frozen=True):
    ciphertext_blob: bytes


class _Opened(Answer, frozen=True):
    plaintext: bytes


def wrap(key: str, plaintext: bytes, cluster: str, api: Api | None = None) -> bytes:
    """Return `plaintext`, at most 4096 bytes, encrypted by the key of this ARN.

    Raises:
        ProviderError: there is no such key (GC1160), no right to use it (GC1161), or no answer.
    """
    try:
        return (
            (api or _at(key))
            .ask(
                _Sealed,
                "kms",
                "encrypt",
                KeyId=key,
                Plaintext=plaintext,
                EncryptionContext={_CONTEXT: cluster},
            )
            .ciphertext_blob
        )
    except AwsError as error:
        raise _told(key, error) from error


def unwrap(key: str, ciphertext: bytes, cluster: str, api: Api | None = None) -> bytes:
    """Return what `wrap` encrypted.

    Raises:
        ProviderError: as `wrap`; GC905 where it is of another key or cluster, or damaged.
    """
    try:
        return (
            (api or _at(key))
            .ask(
                _Opened,
                "kms",
                "decrypt",
                **_by(key),
                CiphertextBlob=ciphertext,
                EncryptionContext={_CONTEXT: cluster},
            )
            .plaintext
        )
    except AwsError as error:
        raise _told(key, error) from error


def _by(key: str) -> dict[str, str]:
    """Return which key shall decrypt.

    An alias may have come to mean another key since; the ciphertext names the one that made it.
    """
    return {} if ":alias/" in key else {"KeyId": key}


def _at(key: str) -> Api:
    return Api(key.split(":")[3])


def _told(key: str, error: AwsError) -> Exception:
    said = error.diagnostics[0].detail
    if error.code in _ABSENT:
        return no_such_key(key, said)
    if error.code in _FORBIDDEN:
        return no_rights(key, said, _RIGHTS)
    if error.code in _ANOTHER:
        return not_wrapped_by(key, said)
    return error
