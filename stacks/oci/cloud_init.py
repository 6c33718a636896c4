"""What a node does on its first start: authorize the cluster's key, and print its host key.

Everything else is done over SSH by the roles. Specific to OCI: its platform images have a firewall
for all but SSH, in addition to the security groups, so that no node would reach another.
"""

from __future__ import annotations

import base64

from ..io.ssh import cloud_config

_IPTABLES = """\
if [ -f /etc/iptables/rules.v4 ]; then
  sed -i -E '/^-A (INPUT|FORWARD) -j REJECT/d' /etc/iptables/rules.v4
  iptables-restore /etc/iptables/rules.v4
fi
if systemctl -q is-active firewalld; then firewall-cmd -q --set-default-zone=trusted; fi
"""
"""Ends the refusals and keeps the rest: rules of the chain InstanceServices guard the boot volume
(docs.oracle.com, Compute, "Essential Firewall Rules")."""


def metadata(*, user: str, authorized_key: str) -> dict[str, str]:
    """Return the metadata of a node: its cloud-config, as OCI takes it."""
    modules = {"runcmd": [["sh", "-c", _IPTABLES]]}
    text = cloud_config(user=user, authorized_key=authorized_key, more=modules)
    return {"user_data": base64.b64encode(text.encode()).decode()}
