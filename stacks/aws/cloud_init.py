"""What a node does on its first start: let the cluster's key in, and show its own host key.

Everything else is done over SSH by the roles. No private key and no secret stands here, nor in
launch templates or state.
"""

from __future__ import annotations

import base64

from gcluster.stacks.console import cloud_config, host_keys

__all__ = ["NO_KEY", "encoded", "host_keys", "user_data"]

NO_KEY = "ssh-ed25519 KEY-OF-THE-CLUSTER"
"""Stands in recorded graphs for the public key, which is made by the first `up`."""


def user_data(*, user: str, authorized_key: str) -> str:
    """Return the cloud-config of a node; see `cloud_config`."""
    return cloud_config(user=user, authorized_key=authorized_key)


def encoded(text: str) -> str:
    """Return user data as launch templates take it."""
    return base64.b64encode(text.encode()).decode()
