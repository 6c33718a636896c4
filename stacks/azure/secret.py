"""A secret that an Azure key vault keeps."""

from __future__ import annotations

import re

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.pipeline.transport import HttpTransport
from azure.core.rest import HttpRequest, HttpResponse
from azure.identity import DefaultAzureCredential

from ...schemas.decoding import decode_json
from ..provider import provider_error
from .api import Answer, refusals

_PLACE = re.compile(r"(https://[a-z0-9-]+\.(vault\.[a-z.]+))(/secrets/[^/]+(/[^/]+)?)")
_VERSION = "7.4"
"""API version of Key Vault."""


class _Value(Answer, frozen=True):
    value: str


def read(
    place: str,
    credential: TokenCredential | None = None,
    transport: HttpTransport[object, object] | None = None,
) -> str:
    """Return a secret, "https://VAULT.vault.azure.net/secrets/NAME"; its newest version if none.

    Raises:
        ProviderError: it can't be read.
    """
    named = _PLACE.fullmatch(place)
    if named is None:
        raise provider_error("GC917", "it is no https://VAULT.vault.azure.net/secrets/NAME")
    vault, domain, path = named[1], named[2], named[3]
    login = BearerTokenCredentialPolicy(
        credential or DefaultAzureCredential(), f"https://{domain}/.default"
    )
    client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
        vault, policies=[RetryPolicy(), login], transport=transport
    )
    with refusals(), client:
        response = client.send_request(HttpRequest("GET", f"{vault}{path}?api-version={_VERSION}"))
        response.raise_for_status()
        return decode_json(response.content, _Value).value
