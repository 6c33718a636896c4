#!/usr/bin/python
"""Verify a node's InfiniBand: ports, partitions, switches, subnet manager, IPoIB."""

from __future__ import annotations

DOCUMENTATION = r"""
module: infiniband_check
short_description: Verify a node's InfiniBand
description:
  - Checks the ports, the switches that they hang on and the subnet manager; fails with everything that differs.
  - Returns the firmware of each adapter, which no one changes.
options:
  devices:
    description: RDMA devices of the rails; empty for all of link type InfiniBand.
    type: list
    elements: str
    default: []
  rails:
    description: Number of rails.
    type: int
    required: true
  gbps:
    description: Rate of a rail in Gb/s.
    type: float
    required: true
  leaves:
    description: Pattern of the switch's description for each rail; empty where any will do.
    type: list
    elements: str
    default: []
  partition_keys:
    description: Partition keys that each port has.
    type: list
    elements: str
    default: []
  ipoib:
    description: IP over InfiniBand; empty where there is none.
    type: dict
    default: {}
  subnet_manager:
    description: Service of the subnet manager that runs on this node; empty for none.
    type: str
    default: ""
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
"""

EXAMPLES = r"""
- name: Check the ports, the subnet manager and the switches
  gcluster.cluster.infiniband_check:
    rails: 8
    gbps: 400
    partition_keys: ["0x8001"]
    ipoib: {network: 10.200.0.0/16, mtu: 4092}
    subnet_manager: opensm
"""

RETURN = r"""
differences:
  description: Everything that isn't as requested.
  returned: failure
  type: list
  elements: str
notes:
  description: The firmware of each adapter, and which differ.
  returned: always
  type: list
  elements: str
"""

import fcntl
import fnmatch
import re
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import exit_with_notes
from ..module_utils.node import first_line, is_active, run, system_path
from ..module_utils.rdma import Adapters, firmware, interface_file, ipoib_address, link_differences
from ..module_utils.state import Failed

ARGUMENTS: dict[str, Any] = {
    "devices": {"type": "list", "elements": "str", "default": []},
    "rails": {"type": "int", "required": True},
    "gbps": {"type": "float", "required": True},
    "leaves": {"type": "list", "elements": "str", "default": []},
    "partition_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "ipoib": {"type": "dict", "default": {}},
    "subnet_manager": {"type": "str", "default": ""},
}
SIOCGIFADDR = 0x8915
IPOIB_WAIT_S = 5
KEY, MEMBER = 0x7FFF, 0x8000
"""Of a partition key: its number, and the bit of a full member."""


def address_of(interface: str) -> str:
    """Return an interface's IPv4 address, "" without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("256s", interface.encode())
            return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)[20:24])
        except OSError:
            return ""


def leaf_differences(chosen: Adapters, leaves: list[str]) -> Iterator[str]:
    """Yield rails that hang on another switch than they should."""
    for rail, (device, pattern) in enumerate(zip(chosen, leaves)):
        if chosen[device].get("state") != "Active":
            continue  # named already
        code, text = run("smpquery", "-C", device, "-P", "1", "-D", "nodedesc", "0,1")
        found = re.sub(r"^Node Description:\.*", "", text.splitlines()[-1] if text else "")
        if code:
            yield f"rail {rail}, {device}: the switch beyond doesn't answer: {text}"
        elif not fnmatch.fnmatchcase(found, pattern):
            yield f"rail {rail}, {device}: it hangs on {found}, not {pattern}"
    if len(leaves) != len(chosen) and leaves:
        yield f"{len(leaves)} leaves are named for {len(chosen)} rails"


def port_differences(chosen: Adapters, partition_keys: list[str]) -> Iterator[str]:
    """Yield ports without a subnet manager or outside of their partitions."""
    for rail, (device, port) in enumerate(chosen.items()):
        if port.get("sm lid", "0") == "0" and port.get("physical state") == "LinkUp":
            yield f"rail {rail}, {device}: no subnet manager answers there"
        folder = system_path("/sys/class/infiniband") / device / "ports/1/pkeys"
        entries = [first_line(path) for path in folder.iterdir()] if folder.is_dir() else []
        keys = {int(entry, 16) for entry in entries if entry}
        for wanted in partition_keys:
            number = int(wanted, 16) & KEY
            if not keys & {number, number | MEMBER}:
                yield f"rail {rail}, {device}: the port isn't in partition {wanted}"
            elif int(wanted, 16) & MEMBER and number | MEMBER not in keys:
                yield (
                    f"rail {rail}, {device}: the port is only a limited member of partition {wanted}"
                )


def ipoib_differences(devices: list[str], ipoib: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with IP over InfiniBand."""
    interface, address = ipoib_address(devices, ipoib["network"])
    for name, wanted in (("mode", "datagram"), ("mtu", str(ipoib["mtu"]))):
        found = interface_file(interface, name)
        if found != wanted:
            yield f"{interface} has {name} {found or 'unknown'}, not {wanted}"
    found = address_of(interface)
    if found != address.split("/")[0]:
        yield f"{interface} has address {found or 'none'}, not {address}"


def settled_ipoib_differences(devices: list[str], ipoib: dict[str, Any]) -> list[str]:
    """Return what stays wrong with IP over InfiniBand: the network's daemon takes some seconds."""
    wrong: list[str] = []
    for _ in range(IPOIB_WAIT_S):
        wrong = list(ipoib_differences(devices, ipoib))
        if not wrong:
            break
        time.sleep(1)
    return wrong


def manager_differences(service: str, device: str) -> Iterator[str]:
    """Yield what is wrong with the subnet manager of this node."""
    if not is_active(service):
        yield f"{service} isn't running"
    code, text = run("sminfo", "-C", device, "-P", "1")
    if code or not text.endswith("SMINFO_MASTER"):
        yield f"no subnet manager rules: {text}"


def differences(requested: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return all differences, and the adapters' firmware."""
    devices = requested["devices"]
    chosen, wrong = link_differences("infiniband", devices, requested["rails"], requested["gbps"])
    wrong += leaf_differences(chosen, requested["leaves"])
    wrong += port_differences(chosen, requested["partition_keys"])
    if requested["ipoib"] and chosen:
        wrong += settled_ipoib_differences(devices, requested["ipoib"])
    if requested["subnet_manager"] and chosen:
        wrong += manager_differences(requested["subnet_manager"], next(iter(chosen)))
    return wrong, firmware(chosen)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        wrong, firmware = differences(module.params)
    except Failed as error:
        module.fail_json(msg=str(error))
    exit_with_notes(module, wrong, firmware)


if __name__ == "__main__":
    main()
