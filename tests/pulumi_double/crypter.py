"""Encrypts the secrets of the double's stacks; a scheme in the form of Pulumi's replaces it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .backend import SECRET, SIGNATURE, Refusal


class Crypter:
    """Encrypts secrets of one stack with the passphrase of the environment."""

    def __init__(self, passphrase: str, state: str) -> None:
        """Open with the state of an earlier run; "" begins a new one.

        Raises:
            Refusal: another passphrase.
        """
        parts = state.split(":", 2)
        salt = base64.b64decode(parts[1]) if state else secrets.token_bytes(8)
        self._key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, 1000, 32)
        self._known: dict[str, str] = {}
        if state:
            try:
                self.decrypt(parts[2])
            except InvalidTag:
                raise Refusal("error: incorrect passphrase") from None
        sealed = parts[2] if state else self.encrypt("pulumi")
        self.state = f"v1:{base64.b64encode(salt).decode()}:{sealed}"

    def encrypt(self, text: str) -> str:
        """Return ciphertext; the same for the same text, so that checkpoints can be compared."""
        if text not in self._known:
            nonce = secrets.token_bytes(12)
            sealed = AESGCM(self._key).encrypt(nonce, text.encode(), None)
            parts = (base64.b64encode(nonce).decode(), base64.b64encode(sealed).decode())
            self._known[text] = ":".join(("v1", *parts))
        return self._known[text]

    def decrypt(self, text: str) -> str:
        """Return the plain text."""
        _, nonce, sealed = text.split(":")
        plain = AESGCM(self._key).decrypt(base64.b64decode(nonce), base64.b64decode(sealed), None)
        self._known[plain.decode()] = text
        return plain.decode()

    def seal(self, value: Any) -> Any:
        """Return a value with its secrets as ciphertext."""
        if isinstance(value, list):
            return [self.seal(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.get(SIGNATURE) == SECRET and "value" in value:
            return {SIGNATURE: SECRET, "ciphertext": self.encrypt(json.dumps(value["value"]))}
        return {key: self.seal(item) for key, item in value.items()}

    def unseal(self, value: Any) -> Any:
        """Return a value with its secrets as the protocol sends them."""
        if isinstance(value, list):
            return [self.unseal(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.get(SIGNATURE) == SECRET and "ciphertext" in value:
            return {SIGNATURE: SECRET, "value": json.loads(self.decrypt(value["ciphertext"]))}
        return {key: self.unseal(item) for key, item in value.items()}
