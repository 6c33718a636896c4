#!/usr/bin/python
"""Return the interface for IP over InfiniBand and the address that it gets."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ipoib_info
short_description: Return the interface and address for IP over InfiniBand
description:
  - Returns the interface of the first rail, and its address in a network. The host part is that of the
    node's own address.
options:
  devices:
    description: RDMA devices of the rails; empty for all of link type InfiniBand.
    type: list
    elements: str
    default: []
  network:
    description: Network of IP over InfiniBand.
    type: str
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Find the first rail's interface and its address
  gcluster.cluster.ipoib_info: {network: 10.200.0.0/16}
  register: ipoib
"""

RETURN = r"""
interface:
  description: Name of the first rail's network interface.
  returned: success
  type: str
  sample: ibp24s0
address:
  description: Its address, with the network's prefix.
  returned: success
  type: str
  sample: 10.200.0.17/16
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.rdma import ipoib_address
from ..module_utils.state import Failed

ARGUMENTS: dict[str, Any] = {
    "devices": {"type": "list", "elements": "str", "default": []},
    "network": {"type": "str", "required": True},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        interface, address = ipoib_address(module.params["devices"], module.params["network"])
    except Failed as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, interface=interface, address=address)


if __name__ == "__main__":
    main()
