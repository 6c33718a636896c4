#!/usr/bin/python
"""Find which of a node's own addresses a service of the cluster listens on."""

from __future__ import annotations

DOCUMENTATION = r"""
module: listen_address
short_description: Say which of the node's addresses a service is to listen on
description:
  - Resolves the address that the cluster reaches the node by, and fails where no interface of the node has it, or where
    it is one of the internet's.
  - Changes nothing.
author: The gcluster authors
options:
  address:
    description: Address or name that other nodes use.
    type: str
    required: true
  service:
    description: What is to listen there, for the message.
    type: str
    required: true
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Find the address that the exporter is to listen on
  gcluster.cluster.listen_address: {address: 10.20.0.11, service: the exporter}
  register: found
"""

RETURN = r"""
address:
  description: The address, an IPv6 one in brackets.
  returned: success
  type: str
  sample: 10.20.0.11
"""

import errno
import socket
from ipaddress import ip_address
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.state import Failed

ARGUMENTS: dict[str, Any] = {
    "address": {"type": "str", "required": True},
    "service": {"type": "str", "required": True},
}


def own_address(address: str, service: str) -> str:
    """Return the node's own address that a name or address resolves to.

    Raises:
        Failed: it is another's, or the internet's.
    """
    try:
        found = sorted({str(info[4][0]) for info in socket.getaddrinfo(address, None)})
    except OSError as error:
        raise Failed(f"{address} has no address: {error.strerror or error}") from error
    # A node's own name often is a loopback address in its /etc/hosts, where no other node comes in.
    routed = [one for one in found if not ip_address(one).is_loopback] or found
    own = [one for one in routed if is_own(one)]
    if not own:
        raise Failed(
            f"no interface of this node has {', '.join(routed)}, by which the cluster reaches it: "
            f"{service} can't listen there; give the host an address of the cluster's network"
        )
    private = [one for one in own if not ip_address(one).is_global]
    if not private:
        raise Failed(
            f"{', '.join(own)} is an address of the internet: {service} doesn't listen there; "
            "give the host an address of a private network"
        )
    return f"[{private[0]}]" if ":" in private[0] else private[0]


def is_own(address: str) -> bool:
    """Return whether an interface of the node has an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as bound:
        try:
            bound.bind((address, 0))
        except OSError as error:
            if error.errno in {errno.EADDRNOTAVAIL, errno.EINVAL}:
                return False
            raise
    return True


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        address = own_address(module.params["address"], module.params["service"])
    except Failed as failed:
        module.fail_json(msg=str(failed))
    module.exit_json(changed=False, address=address)


if __name__ == "__main__":
    main()
