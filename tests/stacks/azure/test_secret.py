"""A secret of an Azure key vault is read by its address; what answers is a double."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
import requests
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse

from gcluster.stacks.azure.api import read_secret
from gcluster.stacks.provider import ProviderError

from .azure_double import Login

PLACE = "https://demo.vault.azure.net/secrets/ldap"


class Vault(BaseAdapter):
    """Answers as the reference of "Get Secret" (Key Vault 7.4) has it."""

    def __init__(self, status: int = 200) -> None:
        """Keep one secret."""
        super().__init__()
        self.calls: list[str] = []
        self._status = status

    def send(  # type: ignore[override]  # only what is used
        self, request: requests.PreparedRequest, **_: object
    ) -> requests.Response:
        """Answer."""
        self.calls.append(f"{request.method} {request.url} {request.headers['Authorization']}")
        good = {"value": "plover", "id": f"{PLACE}/1"}
        bad = {"error": {"code": "Forbidden", "message": "Caller is not authorized"}}
        body = json.dumps(good if self._status == 200 else bad).encode()
        raw = HTTPResponse(
            BytesIO(body),
            status=self._status,
            headers={"Content-Type": "application/json"},
            preload_content=False,
        )
        return requests.adapters.HTTPAdapter().build_response(request, raw)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Hold nothing."""


def _transport(vault: Vault) -> RequestsTransport:
    session = requests.Session()
    session.mount("https://", vault)
    return RequestsTransport(session=session, session_owner=False)


def test_a_secret_is_requested_with_the_vaults_own_token() -> None:
    vault = Vault()
    assert read_secret(PLACE, Login(), _transport(vault)) == "plover"
    assert vault.calls == [f"GET {PLACE}?api-version=7.4 Bearer not-a-token"]


def test_a_refusal_is_reported_with_azures_message() -> None:
    with pytest.raises(ProviderError, match="not authorized"):
        read_secret(PLACE, Login(), _transport(Vault(status=403)))


def test_another_address_is_no_vault() -> None:
    with pytest.raises(ProviderError, match="it is no https"):
        read_secret("https://example.com/secrets/ldap", Login(), _transport(Vault()))
