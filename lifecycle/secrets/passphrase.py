"""The secret that encrypts what is secret in the stacks of cloud sites: kept in the vault."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cluster import Cluster

NAME = "pulumi"
"""Of the secret in the vault."""
_BYTES = 32
"""As many as the key of AES-256-GCM, which the engine derives from the passphrase."""


def read_passphrase(cluster: Cluster) -> str:
    """Return the passphrase; "" while none was made.

    Raises:
        LifecycleError: the key is missing, or another than the cluster's (GC905).
    """
    if cluster.vault.version(NAME) is None:
        return ""
    return cluster.vault.reveal(NAME).decode()


def make_passphrase(cluster: Cluster) -> str:
    """Return the passphrase, made at first use: 32 random bytes as base64. Only for a run."""
    cluster.vault.ensure(NAME, lambda: base64.b64encode(secrets.token_bytes(_BYTES)))
    return read_passphrase(cluster)
