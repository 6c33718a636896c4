"""The key that signs a cluster's bundles, and the line by which its nodes know it."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from .bundle import NAMESPACE

KEY_SECRET = "converge-key"  # noqa: S105  # the secret's name
"""The private key, in the cluster's vault; it never leaves the control machine."""


def signing_key() -> bytes:
    """Return a new Ed25519 key in OpenSSH's format; it is never written to a disk."""
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def signers(key: bytes, cluster: str) -> bytes:
    """Return the allowed_signers file of a cluster, see ssh-keygen(1): this key, for this alone."""
    public = load_ssh_private_key(key, password=None).public_key()
    line = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return f'converge@{cluster} namespaces="{NAMESPACE}" {line}\n'.encode()
