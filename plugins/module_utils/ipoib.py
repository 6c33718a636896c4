"""The interface and address of IP over InfiniBand, which follow from the node's own address."""

from __future__ import annotations

import ipaddress
import socket

from .rdma import interface_of, rails
from .state import Failed

OUTSIDE = ("192.0.2.1", 9)
"""An address of nobody (RFC 5737): on the way there is the node's own."""


def own_address() -> ipaddress.IPv4Address:
    """Return the address that the node talks to others with; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(OUTSIDE)
        return ipaddress.IPv4Address(probe.getsockname()[0])


def ipoib_address(devices: list[str], network: str) -> tuple[str, str]:
    """Return the first rail's interface, and its address with the prefix of the network.

    Raises:
        Failed: no adapter speaks InfiniBand, or the first rail has no interface.
    """
    chosen, wrong = rails("infiniband", devices)
    if not chosen:
        raise Failed("; ".join(wrong) or "no adapter speaks InfiniBand")
    first = next(iter(chosen))
    interface = interface_of(first)
    if not interface:
        raise Failed(f"{first} has no interface of its own: is ib_ipoib loaded?")
    wanted = ipaddress.IPv4Network(network, strict=False)
    host = int(own_address()) & int(wanted.hostmask)
    return interface, f"{wanted.network_address + host}/{wanted.prefixlen}"
