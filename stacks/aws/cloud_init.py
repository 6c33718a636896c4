"""What a node does on its first start: authorize the cluster's key, and print its host key.

Everything else is done over SSH by the roles. No private key and no secret is in it, nor in launch
templates or state.
"""

from __future__ import annotations

import base64
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart

from ..io.ssh import cloud_config, host_keys

__all__ = ["encoded", "host_keys", "user_data", "with_node_config"]


def user_data(*, user: str, authorized_key: str) -> str:
    """Return the cloud-config of a node; see `cloud_config`."""
    return cloud_config(user=user, authorized_key=authorized_key)


def with_node_config(config: str, text: str) -> str:
    """Return user data of two parts: what EKS' nodeadm reads, and the cloud-config."""
    whole = MIMEMultipart(boundary="==gcluster==")
    for kind, subtype, content in (
        ("application", "node.eks.aws", config),
        ("text", "cloud-config", text),
    ):
        part = MIMENonMultipart(kind, subtype, charset="us-ascii")
        part.set_payload(content)
        whole.attach(part)
    return whole.as_string()


def encoded(text: str) -> str:
    """Return user data as launch templates take it."""
    return base64.b64encode(text.encode()).decode()
