#!/usr/bin/python
"""Write LNet's configuration: each network over the interfaces that lead to its servers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lnet_config
short_description: Write LNet's configuration
description:
  - Each network gets the interfaces that lead to its servers; for EFA the devices that AWS' set-up takes.
author: The gcluster authors
options:
  networks:
    description:
      - Networks with C(net) (tcp, o2ib, efa), C(towards), an address or name of a server, and C(interfaces).
      - Without interfaces it is the one that the kernel routes that address over.
    type: list
    elements: dict
    required: true
  routes:
    description: Networks that routers lead to, each with C(net) and C(gateway), the NID of a router.
    type: list
    elements: dict
    default: []
attributes:
  check_mode:
    description: Says what would change and changes nothing.
    support: full
  diff_mode:
    description: Shows the files.
    support: full
"""

EXAMPLES = r"""
- name: Configure LNet's networks
  gcluster.cluster.lnet_config:
    networks: [{net: tcp, towards: 10.0.0.5}]
"""

RETURN = r"""
changes:
  description: The files that were written or removed.
  returned: success
  type: list
  elements: str
  sample: [/etc/lnet.conf]
"""

import socket
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.files import text_of, write_text
from ..module_utils.node import run_json
from ..module_utils.state import Failed

CONF = Path("/etc/lnet.conf")
KEFALND = Path("/etc/modprobe.d/gcluster-kefalnd.conf")
MANAGED = "# Written by gcluster. Changes made here are lost; change the spec.\n"
INFINIBAND = Path("/sys/class/infiniband")
EFA_CREDITS = 32
DEVICES_OF_P5 = 32


def address_of(towards: str) -> str:
    """Return a server's address."""
    try:
        return str(socket.getaddrinfo(towards, None, proto=socket.IPPROTO_TCP)[0][4][0])
    except OSError as error:
        raise Failed(f"the server {towards} has no address: {error.strerror or error}") from error


def interface_towards(net: str, towards: str) -> str:
    """Return the interface that leads to a server."""
    address = address_of(towards)
    routes, why = run_json("ip", "-json", "route", "get", address)
    if not routes:
        raise Failed(f"no route to {towards} ({address}): {why}")
    device, via = str(routes[0]["dev"]), routes[0].get("gateway")
    if net.startswith("o2ib") and via:
        raise Failed(
            f"{towards} ({address}) is not on this node's InfiniBand subnet:"
            f" it goes over {device} via {via}"
        )
    return device


def efa_devices() -> list[str]:
    """Return the EFA devices for LNet, as AWS' set-up chooses them.

    See the FSx guide, configure-efa-clients, 2026-11.
    Of p5's 32 every fourth, elsewhere the first and the last: each takes connections of the file system.
    """
    drivers = {path.name: path / "device/driver" for path in INFINIBAND.glob("*")}
    devices = sorted(n for n, d in drivers.items() if d.exists() and d.resolve().name == "efa")
    if not devices:
        raise Failed("the file system is to be reached over EFA, and this node has no EFA device")
    return (
        devices[::4]
        if len(devices) >= DEVICES_OF_P5
        else list(dict.fromkeys([devices[0], devices[-1]]))
    )


def interfaces(network: dict[str, Any]) -> list[str]:
    """Return the interfaces of a network."""
    if network.get("interfaces"):
        named: list[str] = network["interfaces"]
        return named
    if network["net"] == "efa":
        return efa_devices()
    return [interface_towards(network["net"], network["towards"])]


def described(networks: list[dict[str, Any]], routes: list[dict[str, Any]]) -> tuple[str, str]:
    """Return lnet.conf and the options of EFA's module ("" without EFA)."""
    text, options = f"{MANAGED}net:\n", ""
    for network in networks:
        text += f"    - net type: {network['net']}\n      local NI(s):\n"
        for name in interfaces(network):
            text += f"        - interfaces:\n              0: {name}\n"
            if network["net"] == "efa":
                text += f"          tunables:\n              peer_credits: {EFA_CREDITS}\n"
        if network["net"] == "efa":
            interface = interface_towards("tcp", network["towards"])
            options = f"{MANAGED}options kefalnd ipif_name={interface}\n"
    text += "route:\n" if routes else ""
    for route in routes:
        text += f"    - net: {route['net']}\n      gateway: {route['gateway']}\n"
    return f"{text}global:\n    discovery: 1\n", options


def changed(path: Path, content: str, *, act: bool) -> dict[str, str] | None:
    """Write a file, or remove it where it has no content; return Ansible's diff."""
    if content:
        return write_text(path, content, act=act)
    if not path.exists():
        return None
    before = text_of(path)
    if act:
        path.unlink()
    return {"before_header": str(path), "after_header": str(path), "before": before, "after": ""}


ARGUMENTS: dict[str, Any] = {
    "networks": {"type": "list", "elements": "dict", "required": True},
    "routes": {"type": "list", "elements": "dict", "default": []},
}


def main() -> None:
    """Write what differs."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        conf, options = described(module.params["networks"], module.params["routes"])
    except Failed as failed:
        module.fail_json(msg=str(failed))
    act = not module.check_mode
    both = [changed(CONF, conf, act=act), changed(KEFALND, options, act=act)]
    diffs = [diff for diff in both if diff]
    module.exit_json(
        changed=bool(diffs),
        changes=[diff["after_header"] for diff in diffs],
        diff=diffs if module._diff else [],
    )


if __name__ == "__main__":
    main()
