"""What the switches that a node hangs on announce of themselves (LLDP, IEEE 802.1AB)."""

from __future__ import annotations

import select
import socket
import struct
import time

ETHERTYPE = 0x88CC
GROUP = bytes.fromhex("0180c200000e")
"""Where switches send it: the nearest bridge's group address."""
WAIT_S = 65.0
"""They announce themselves each 30 s (802.1AB, msgTxInterval): one may be lost."""
SYSTEM_NAME = 5
"""Type of the entry with the switch's name; 0 ends the entries."""
HEADER_BYTES = 14
_ADD_MEMBERSHIP, _MULTICAST, _SOL_PACKET = 1, 0, 263
"""PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST, SOL_PACKET (linux/if_packet.h)."""


def system_name(frame: bytes) -> str:
    """Return the system name in an LLDP frame, Ethernet's header first; "" where it has none."""
    rest = frame[HEADER_BYTES:]
    while len(rest) >= 2:  # noqa: PLR2004  # an entry's head: 7 bits of type, 9 of length
        head = int.from_bytes(rest[:2], "big")
        kind, length = head >> 9, head & 0x1FF
        if kind == SYSTEM_NAME:
            return rest[2 : 2 + length].decode("utf-8", "replace")
        if kind == 0:
            break
        rest = rest[2 + length :]
    return ""


def neighbours(interfaces: list[str], wait_s: float = WAIT_S) -> dict[str, str]:
    """Return interface -> its switch's announced name; none of those without LLDP."""
    found: dict[str, str] = {}
    sockets = {}
    try:
        for interface in interfaces:
            sockets[_listen(interface)] = interface
        end = time.monotonic() + wait_s
        while len(found) < len(sockets) and (left := end - time.monotonic()) > 0:
            for ready in select.select(list(sockets), [], [], left)[0]:
                if name := system_name(ready.recv(2048)):
                    found[sockets[ready]] = name
    finally:
        for each in sockets:
            each.close()
    return found


def _listen(interface: str) -> socket.socket:
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    listener.bind((interface, ETHERTYPE))
    member = struct.pack("iHH8s", socket.if_nametoindex(interface), _MULTICAST, 6, GROUP)
    listener.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, member)
    return listener
