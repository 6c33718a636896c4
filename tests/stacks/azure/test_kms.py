"""A data key under an RSA key of an Azure key vault; what answers is a double."""

from __future__ import annotations

import base64
import json
from io import BytesIO

import pytest
import requests
from azure.core.pipeline.transport import RequestsTransport
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse

from gcluster.stacks.azure.kms import unwrap, wrap
from gcluster.stacks.provider import ProviderError

from .azure_double import Login

KEY = "https://demo.vault.azure.net/keys/gcluster"
VERSION = f"{KEY}/0123456789abcdef0123456789abcdef"
_OAEP = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


class VaultDouble(BaseAdapter):
    """Answers as the reference of "Wrap Key" and "Unwrap Key" (Key Vault 7.4) has it."""

    def __init__(self, status: int = 200, word: str = "") -> None:
        """Make an RSA key; hold a refusal, or none."""
        super().__init__()
        self.asked: list[str] = []
        self._key = rsa.generate_private_key(65537, 2048)
        self._status, self._word = status, word

    def send(  # type: ignore[override]  # only what is used
        self, request: requests.PreparedRequest, **_: object
    ) -> requests.Response:
        """Answer."""
        self.asked.append(f"{request.method} {request.url}")
        body: object = {"error": {"code": "Refused", "innererror": {"code": self._word}}}
        if self._status == 200:
            told = json.loads(request.body or b"")
            assert told["alg"] == "RSA-OAEP-256"
            given = base64.urlsafe_b64decode(told["value"] + "===")
            public, wraps = self._key.public_key(), "/wrapkey" in str(request.url)
            made = public.encrypt(given, _OAEP) if wraps else self._key.decrypt(given, _OAEP)
            text = base64.urlsafe_b64encode(made).rstrip(b"=").decode()
            body = {"kid": VERSION, "value": text}
        raw = HTTPResponse(
            BytesIO(json.dumps(body).encode()),
            status=self._status,
            headers={"Content-Type": "application/json"},
            preload_content=False,
        )
        return requests.adapters.HTTPAdapter().build_response(request, raw)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Hold nothing."""


def _transport(vault: VaultDouble) -> RequestsTransport:
    session = requests.Session()
    session.mount("https://", vault)
    return RequestsTransport(session=session, session_owner=False)


def test_a_data_key_comes_back_by_the_version_that_wrapped_it() -> None:
    vault = VaultDouble()
    identity = b"AGE-SECRET-KEY-1" + b"Q" * 58
    wrapped = wrap(KEY, identity, "one", Login(), _transport(vault))
    assert identity not in wrapped
    assert unwrap(KEY, wrapped, "one", Login(), _transport(vault)) == identity
    assert vault.asked == [
        f"POST {KEY}/wrapkey?api-version=7.4",
        f"POST {VERSION}/unwrapkey?api-version=7.4",
    ]


def test_a_state_can_not_send_the_login_to_another_vault() -> None:
    vault = VaultDouble()
    for place in ("https://evil.vault.azure.net/keys/gcluster/1", f"{KEY}-two/1"):
        with pytest.raises(ProviderError) as caught:
            unwrap(KEY, f"{place} AAAA".encode(), "one", Login(), _transport(vault))
        assert caught.value.diagnostics[0].code == "GC905"
    assert vault.asked == []


@pytest.mark.parametrize(
    ("status", "word", "code"),
    [
        (404, "KeyNotFound", "GC1160"),
        (403, "KeyDisabled", "GC1160"),
        (403, "ForbiddenByPolicy", "GC1161"),
        (403, "ForbiddenByRbac", "GC1161"),
    ],
)
def test_a_refusal_is_said_with_the_key_and_azures_words(status: int, word: str, code: str) -> None:
    with pytest.raises(ProviderError) as caught:
        wrap(KEY, b"x", "one", Login(), _transport(VaultDouble(status, word)))
    told = caught.value.diagnostics[0]
    assert (told.code, KEY in told.summary) == (code, True)
    assert "Refused" in told.detail
