"""Keys of tunnels between sites: a private one for each gateway, the public ones for its peers.

Private keys are made here and kept encrypted; each reaches its own gateway alone. The public keys
that a gateway needs are a secret too, kept beside them, so that both reach it the same way.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ...inventory.compile.wireguard import KEY_PREFIX, PEERS_PREFIX

if TYPE_CHECKING:
    from ..state import SecretVault


def tunnel_key() -> bytes:
    """Return a new private key as `wg genkey` prints it: 32 bytes in base64, and a line's end."""
    return base64.b64encode(X25519PrivateKey.generate().private_bytes_raw()) + b"\n"


def public_key(private: bytes) -> str:
    """Return the public half as `wg pubkey` prints it, without the line's end."""
    key = X25519PrivateKey.from_private_bytes(base64.b64decode(private))
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def keep_peers(vault: SecretVault, name: str) -> None:
    """Keep the public keys of the gateways that a secret is named after, as JSON by their pools.

    Their private keys are made where they are missing; where one was made anew since, this is
    another version of the secret.
    """
    found = {}
    for pool in name.removeprefix(PEERS_PREFIX).split("."):
        vault.ensure(KEY_PREFIX + pool, tunnel_key)
        found[pool] = public_key(vault.reveal(KEY_PREFIX + pool))
    vault.keep(name, json.dumps(found, sort_keys=True).encode())


def make_anew(vault: SecretVault, secrets: tuple[str, ...]) -> None:
    """Make the private keys among these secrets anew, and the lists that name them."""
    for name in secrets:
        if name.startswith(KEY_PREFIX):
            vault.keep(name, tunnel_key())
    for name in secrets:
        if name.startswith(PEERS_PREFIX):
            keep_peers(vault, name)
