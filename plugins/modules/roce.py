#!/usr/bin/python
"""Set RoCE's interfaces, or verify them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: roce
short_description: Configure RoCE's interfaces or verify them
description:
  - Sets DSCP, lossless priority (PFC), congestion notification (ECN), MTU, rings and pause of each rail's interface.
  - With O(state=verified) checks the adapters, and looks for the index of the RoCE v2 GID, which must be one on
    all rails because NCCL takes one for all.
options:
  state:
    description:
      - V(present) makes the changes that are due.
      - V(verified) changes nothing and fails with everything that differs on the running node.
    type: str
    choices: [present, verified]
    default: present
  devices:
    description: RDMA devices of the rails; empty for all of link type Ethernet at the rate.
    type: list
    elements: str
    default: []
  rails:
    description: Number of rails.
    type: int
    default: 0
  gbps:
    description: Rate of a rail in Gb/s; 0 where it isn't known.
    type: float
    default: 0
  managed:
    description: Whether the adapters are set by gcluster (NVIDIA's); others are verified as far as links and GIDs.
    type: bool
    default: true
  networks:
    description: Network of each rail; a node keeps the host part of its own address in each. None where they have addresses.
    type: list
    elements: str
    default: []
  leaves:
    description: Pattern of the system name that each rail's switch announces by LLDP; empty where any will do.
    type: list
    elements: str
    default: []
  mtu:
    description: MTU of the interfaces in bytes.
    type: int
    required: true
  priority:
    description: The lossless priority, 0 to 7.
    type: int
    required: true
  dscp:
    description: DSCP of RoCE's packets.
    type: int
    required: true
  congestion_dscp:
    description: DSCP of congestion notifications.
    type: int
    required: true
  ring:
    description: Entries of the receive and send rings, at most what the adapter has.
    type: int
    required: true
author: The gcluster authors
attributes:
  check_mode: {support: full, description: Returns the changes that are due and makes none.}
"""

EXAMPLES = r"""
- name: Configure the interfaces
  gcluster.cluster.roce:
    rails: 8
    gbps: 400
    mtu: 9000
    priority: 3
    dscp: 26
    congestion_dscp: 48
    ring: 8192
"""

RETURN = r"""
changes:
  description: What was changed, or would be in check mode.
  returned: state is present
  type: list
  elements: str
differences:
  description: Everything that isn't as requested.
  returned: verification failed
  type: list
  elements: str
notes:
  description: The firmware of each adapter, and the index of the GID for NCCL.
  returned: state is verified
  type: list
  elements: str
"""

import fnmatch
import re
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.changes import Change, exit_with_changes, exit_with_notes
from ..module_utils.interface_settings import SettingError
from ..module_utils.lldp import neighbours
from ..module_utils.node import is_active, run
from ..module_utils.rdma import Adapters, firmware, gids, interface_of, link_differences, rails
from ..module_utils.roce import differing_settings, spread_interrupts
from ..module_utils.state import STATE, Failed

ARGUMENTS: dict[str, Any] = {
    "state": STATE,
    "devices": {"type": "list", "elements": "str", "default": []},
    "rails": {"type": "int", "default": 0},
    "gbps": {"type": "float", "default": 0},
    "managed": {"type": "bool", "default": True},
    "networks": {"type": "list", "elements": "str", "default": []},
    "leaves": {"type": "list", "elements": "str", "default": []},
    "mtu": {"type": "int", "required": True},
    "priority": {"type": "int", "required": True},
    "dscp": {"type": "int", "required": True},
    "congestion_dscp": {"type": "int", "required": True},
    "ring": {"type": "int", "required": True},
}
PACKET, MTU_OF_PACKET = 4096, 4200
"""InfiniBand's largest packets in bytes, and the MTU from which on they fit."""


def changes(requested: dict[str, Any], *, act: bool) -> list[Change]:
    """Return the settings of all rails that differ."""
    chosen, wrong = rails("roce", requested["devices"], requested["gbps"], requested["rails"])
    if not requested["devices"] and not requested["gbps"]:
        raise Failed("which adapters carry RoCE isn't known: write devices under rdma of the pool")
    if wrong or not chosen:
        raise Failed("; ".join(wrong) or "no adapter's link type is Ethernet (RoCE)")
    for device in chosen if act and requested["managed"] else ():
        spread_interrupts(interface_of(device))
    return [
        Change(setting.description, setting.apply)
        for rail, device in enumerate(chosen)
        for setting in differing_settings(device, rail, requested)
    ]


def gid_differences(chosen: Adapters) -> tuple[list[str], list[str]]:
    """Return what is wrong with the rails' GIDs of RoCE v2 with an IPv4 address, and their index."""
    indexes = {name: min(own) for name in chosen if (own := gids(name))}
    wrong = [
        f"{name} has no RoCE v2 GID with an IPv4 address" for name in chosen if name not in indexes
    ]
    different = {indexes[name] for name in chosen if name in indexes}
    if len(different) > 1:
        listed = ", ".join(f"{indexes[name]} on {name}" for name in chosen if name in indexes)
        wrong.append(f"the RoCE v2 GID has another index on some rails: {listed}")
    return wrong, [f"NCCL_IB_GID_INDEX={index}" for index in different] if len(
        different
    ) == 1 else []


def verbs_differences(device: str, mtu: int) -> Iterator[str]:
    """Yield what is wrong with the port as programs see it."""
    code, text = run("ibv_devinfo", "-d", device)
    active = re.search(r"active_mtu:\s*(\d+)", text)
    if code or active is None:
        yield f"ibv_devinfo doesn't answer for {device}: {text}"
    elif mtu >= MTU_OF_PACKET and int(active[1]) < PACKET:
        yield f"{device} sends packets of {active[1]} bytes, not {PACKET}: is the MTU {mtu}?"


def differences(requested: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return all differences, and notes on firmware and GIDs."""
    chosen, wrong = link_differences(
        "roce", requested["devices"], requested["rails"], requested["gbps"]
    )
    notes = firmware(chosen)
    if not chosen:
        return wrong, notes
    of_gids, index = gid_differences(chosen)
    wrong += of_gids
    wrong += leaf_differences(chosen, requested["leaves"])
    for rail, device in enumerate(chosen):
        due = differing_settings(device, rail, requested)
        wrong += [f"not {setting.description}" for setting in due]
        if requested["managed"]:
            wrong += verbs_differences(device, requested["mtu"])
    if requested["managed"] and is_active("lldpad"):
        wrong.append("lldpad runs, which sets PFC as the switch offers it")
    return wrong, notes + index


def leaf_differences(chosen: Adapters, leaves: list[str]) -> Iterator[str]:
    """Yield rails connected to another switch than planned, by the switches' announcements."""
    if not leaves:
        return
    found = neighbours([interface_of(device) for device in chosen])
    for rail, (device, pattern) in enumerate(zip(chosen, leaves)):
        switch = found.get(interface_of(device), "")
        if not switch:
            yield f"rail {rail}, {device}: its switch announces no name by LLDP"
        elif not fnmatch.fnmatchcase(switch, pattern):
            yield f"rail {rail}, {device}: it hangs on {switch}, not {pattern}"
    if len(leaves) != len(chosen):
        yield f"{len(leaves)} leaves are named for {len(chosen)} rails"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    try:
        if requested["state"] == "verified":
            exit_with_notes(module, *differences(requested))
        exit_with_changes(module, lambda: changes(requested, act=not module.check_mode))
    except (Failed, SettingError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
