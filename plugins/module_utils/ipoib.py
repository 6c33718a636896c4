"""The interface and address of IP over InfiniBand, which follow from the node's own address."""

from __future__ import annotations

from .interface_settings import SettingError, address_in
from .rdma import interface_of, rails
from .state import Failed


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
    try:
        wanted, address = address_in(network)
    except SettingError as error:
        raise Failed(str(error)) from error
    return interface, f"{address}/{wanted.prefixlen}"
