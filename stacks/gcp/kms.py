"""A cluster's data key, encrypted by a key of Google Cloud KMS and bound to the cluster."""

from __future__ import annotations

import base64
from typing import TypeVar

from ..key_refusals import no_rights, no_such_key, not_wrapped_by
from .api import NOT_FOUND, Answer, Api, GoogleError, Login

_BAD_REQUEST, _FORBIDDEN = 400, 403
_NO_STATE = "FAILED_PRECONDITION"
"""Status of a key whose version is disabled or destroyed."""
_RIGHTS = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
T = TypeVar("T", bound=Answer)


class _Sealed(Answer, frozen=True):
    ciphertext: str


class _Opened(Answer, frozen=True):
    plaintext: str


def wrap(key: str, plaintext: bytes, cluster: str, login: Login | None = None) -> bytes:
    """Return `plaintext`, at most 64 KiB, encrypted by a key "projects/P/.../cryptoKeys/K".

    Raises:
        ProviderError: there is no such key (GC1160), no right to use it (GC1161), or no answer.
    """
    body = {"plaintext": _text(plaintext)}
    answer = _ask(_Sealed, key, "encrypt", body, cluster=cluster, login=login)
    return base64.b64decode(answer.ciphertext)


def unwrap(key: str, ciphertext: bytes, cluster: str, login: Login | None = None) -> bytes:
    """Return what `wrap` encrypted; Google finds the version of the key by itself.

    Raises:
        ProviderError: as `wrap`; GC905 where it is of another key or cluster, or damaged.
    """
    body = {"ciphertext": _text(ciphertext)}
    answer = _ask(_Opened, key, "decrypt", body, cluster=cluster, login=login)
    return base64.b64decode(answer.plaintext)


def _ask(
    kind: type[T],
    key: str,
    verb: str,
    body: dict[str, str],
    *,
    cluster: str,
    login: Login | None,
) -> T:
    api = Api(key.split("/")[1], login=login)
    bound = {**body, "additionalAuthenticatedData": _text(cluster.encode())}
    try:
        return api.ask(kind, f"{key}:{verb}", service="kms", method="POST", body=bound)
    except GoogleError as error:
        said = error.diagnostics[0].detail
        if error.status == NOT_FOUND or _NO_STATE in said:
            raise no_such_key(key, said) from error
        if error.status == _FORBIDDEN:
            raise no_rights(key, said, _RIGHTS) from error
        if error.status == _BAD_REQUEST and verb == "decrypt":
            raise not_wrapped_by(key, said) from error
        raise


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
