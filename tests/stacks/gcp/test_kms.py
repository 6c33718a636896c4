"""A data key under Google Cloud KMS; the session is a double."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from gcluster.stacks.gcp.kms import unwrap, wrap
from gcluster.stacks.provider import ProviderError

KEY = "projects/p/locations/us/keyRings/r/cryptoKeys/k"


class KmsDouble:
    """Answers as the reference of `cryptoKeys.encrypt` and `.decrypt` (v1) has it."""

    def __init__(self, status: int = 200, word: str = "", message: str = "") -> None:
        """Hold a refusal, or none."""
        self.asked: list[str] = []
        self._status, self._refusal = status, {"error": {"message": message, "status": word}}

    def request(self, method: str, url: str, *, json: Any = None, **_: object) -> Any:
        """Answer; the ciphertext is what it was bound to, and the plaintext turned round."""
        self.asked.append(f"{method} {url}")
        if self._status != 200:
            return self._answer(self._refusal)
        bound = base64.b64decode(json["additionalAuthenticatedData"])
        if url.endswith(":encrypt"):
            plain = base64.b64decode(json["plaintext"])
            return self._answer({"ciphertext": _text(bound + b"|" + plain[::-1])})
        owner, _, turned = base64.b64decode(json["ciphertext"]).partition(b"|")
        if owner != bound:
            self._status, word = 400, "INVALID_ARGUMENT"
            return self._answer({"error": {"message": "Decryption failed", "status": word}})
        return self._answer({"plaintext": _text(turned[::-1])})

    def _answer(self, body: object) -> Any:
        return SimpleNamespace(status_code=self._status, content=json.dumps(body).encode())


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_data_key_comes_back_and_is_asked_for_by_the_keys_name() -> None:
    double = KmsDouble()
    wrapped = wrap(KEY, b"data key", "one", double)
    assert b"data key" not in wrapped
    assert unwrap(KEY, wrapped, "one", double) == b"data key"
    root = f"POST https://cloudkms.googleapis.com/v1/{KEY}"
    assert double.asked == [f"{root}:encrypt", f"{root}:decrypt"]


def test_it_is_bound_to_the_cluster() -> None:
    double = KmsDouble()
    wrapped = wrap(KEY, b"data key", "one", double)
    with pytest.raises(ProviderError) as caught:
        unwrap(KEY, wrapped, "two", double)
    assert caught.value.diagnostics[0].code == "GC905"


@pytest.mark.parametrize(
    ("status", "word", "code"),
    [
        (404, "NOT_FOUND", "GC1160"),
        (400, "FAILED_PRECONDITION", "GC1160"),
        (403, "PERMISSION_DENIED", "GC1161"),
    ],
)
def test_a_refusal_is_said_with_googles_words(status: int, word: str, code: str) -> None:
    with pytest.raises(ProviderError) as caught:
        wrap(KEY, b"data key", "one", KmsDouble(status, word, "words of theirs"))
    told = caught.value.diagnostics[0]
    assert (told.code, KEY in told.summary) == (code, True)
    assert "words of theirs" in told.detail
