"""A cluster's data key, encrypted by an RSA key of an Azure key vault or a managed HSM."""

from __future__ import annotations

import base64
import re

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.pipeline.transport import HttpTransport
from azure.core.rest import HttpRequest, HttpResponse
from azure.identity import DefaultAzureCredential

from ...schemas.decoding import decode_json
from ..key_refusals import no_rights, no_such_key, not_wrapped_by
from ..provider import ProviderError, provider_error
from .api import Answer, refusals

_KEY = re.compile(r"(https://[^/]+\.((vault|managedhsm)\.[a-z.]+))/keys/[^/]+(/[0-9a-f]*)?")
_VERSION = "7.4"
"""API version of Key Vault."""
_ALGORITHM = "RSA-OAEP-256"
_CONNECT_S, _READ_S = 10, 30
"""azure-core's own are 300, and it tries four times."""
_RIGHTS = "the role Key Vault Crypto Service Encryption User (keys: wrap, unwrap)"
_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND = 400, 403, 404


class _Operated(Answer, frozen=True):
    kid: str
    value: str


def wrap(
    key: str,
    plaintext: bytes,
    cluster: str,  # noqa: ARG001 - see below
    credential: TokenCredential | None = None,
    transport: HttpTransport[object, object] | None = None,
) -> bytes:
    """Return `plaintext`, at most 190 bytes, with the key's version that encrypted it.

    RSA binds nothing to a cluster: whoever opens it compares the public half that is kept beside.

    Raises:
        ProviderError: there is no such key (GC1160), no right to use it (GC1161), or no answer.
    """
    answer = _ask(key, key, "wrapkey", _text(plaintext), credential=credential, transport=transport)
    return f"{answer.kid} {answer.value}".encode()


def unwrap(
    key: str,
    ciphertext: bytes,
    cluster: str,  # noqa: ARG001 - see `wrap`
    credential: TokenCredential | None = None,
    transport: HttpTransport[object, object] | None = None,
) -> bytes:
    """Return what `wrap` encrypted, by the version that did it.

    Raises:
        ProviderError: as `wrap`; GC905 where it is of another key, or damaged.
    """
    kid, _, value = ciphertext.decode(errors="replace").partition(" ")
    # The version comes from the state: it must be one of the very key that the record names.
    if not f"{kid}/".casefold().startswith(f"{_unversioned(key)}/".casefold()):
        raise not_wrapped_by(key, f"it was encrypted by {kid[:120]}")
    answer = _ask(key, kid, "unwrapkey", value, credential=credential, transport=transport)
    return base64.urlsafe_b64decode(answer.value + "=" * (-len(answer.value) % 4))


def _ask(
    key: str,
    kid: str,
    verb: str,
    value: str,
    *,
    credential: TokenCredential | None,
    transport: HttpTransport[object, object] | None,
) -> _Operated:
    named = _KEY.fullmatch(kid)
    if named is None:
        raise provider_error("GC1160", "it is no https://VAULT.vault.azure.net/keys/NAME")
    login = BearerTokenCredentialPolicy(
        credential or DefaultAzureCredential(), f"https://{named[2]}/.default"
    )
    client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
        named[1], policies=[RetryPolicy(), login], transport=transport
    )
    url = f"{kid.rstrip('/')}/{verb}?api-version={_VERSION}"
    try:
        with refusals(), client:
            body = {"alg": _ALGORITHM, "value": value}
            request = HttpRequest("POST", url, json=body)
            response = client.send_request(
                request, connection_timeout=_CONNECT_S, read_timeout=_READ_S
            )
            response.raise_for_status()
            return decode_json(response.content, _Operated)
    except ProviderError as error:
        raise _told(key, verb, error) from error


def _told(key: str, verb: str, error: ProviderError) -> ProviderError:
    cause, said = error.__cause__, error.diagnostics[0].detail
    status = cause.status_code if isinstance(cause, HttpResponseError) else None
    # A key that is disabled is a 403 too, with its own word for it.
    if status == _NOT_FOUND or (status == _FORBIDDEN and "KeyDisabled" in said):
        return no_such_key(key, said)
    if status == _FORBIDDEN:
        return no_rights(key, said, _RIGHTS)
    if status == _BAD_REQUEST:
        return not_wrapped_by(key, said) if verb == "unwrapkey" else no_such_key(key, said)
    return error


def _unversioned(key: str) -> str:
    return "/".join(key.split("/")[:5])


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
