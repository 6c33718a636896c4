"""Settings of a rail's interface: what differs and what sets it; its address and its own routes.

Each rail has a network of its own. Without routes of its own a node answers for one rail's address
on another, and sends by whichever interface comes first: `arp_ignore`, `arp_announce` and a routing
table for each source address keep rails apart (Linux, Documentation/networking/ip-sysctl.rst;
NVIDIA/nccl#601; libfabric's wiki, "Verbs Provider on Multi-NIC Systems"; read 2026-11).
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .node import first_line, run, system_path

OUTSIDE = ("192.0.2.1", 9)
"""A reserved address (RFC 5737): the route to it is the default route."""
TABLE, PRIORITY = 2000, 20000
"""Routing table of the first rail, and the priority of its rule; the others follow."""
KERNEL = (
    ("arp_ignore", "1", "an address is answered for on its own interface only"),
    ("arp_announce", "2", "questions carry the interface's own address"),
    ("rp_filter", "2", "answers may leave by another interface than questions came in"),
)


class SettingError(Exception):
    """Why an interface can't be set."""


class FileText(NamedTuple):
    """A file of the kernel and what is to be written to it."""

    path: Path
    text: str


class Setting(NamedTuple):
    """A setting that differs: what it should be, and the command or file that sets it."""

    description: str
    action: tuple[str, ...] | FileText

    def apply(self) -> None:
        """Set it."""
        if isinstance(self.action, FileText):
            self.action.path.write_text(self.action.text, encoding="utf-8")
            return
        code, text = run(*self.action)
        if code:
            raise SettingError(f"{' '.join(self.action)}: {text}")


def own_address() -> ipaddress.IPv4Address:
    """Return the address that the node talks to others with; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(OUTSIDE)
        except OSError as error:
            raise SettingError(f"the node has no address of its own yet: {error}") from error
        return ipaddress.IPv4Address(probe.getsockname()[0])


def address_in(network: str) -> tuple[ipaddress.IPv4Network, ipaddress.IPv4Address]:
    """Return a network and the node's address there: it keeps the host part of its own."""
    wanted = ipaddress.IPv4Network(network, strict=False)
    return wanted, wanted.network_address + (int(own_address()) & int(wanted.hostmask))


def address_settings(interface: str, rail: int, network: str) -> Iterator[Setting]:
    """Yield what differs of a rail's address, of its routes and of how it answers for it."""
    wanted, address = address_in(network)
    table, priority = str(TABLE + rail), str(PRIORITY + rail)
    _, managed = run("nmcli", "--get-values", "GENERAL.STATE", "device", "show", interface)
    if re.match(r"\d+ \((?!unmanaged)", managed):
        free = ("nmcli", "device", "set", interface, "managed", "no")
        yield Setting(f"{interface} is left alone by NetworkManager", free)
    flags = first_line(system_path("/sys/class/net") / interface / "flags")
    if flags and not int(flags, 16) & 1:
        yield Setting(f"{interface} is up", ("ip", "link", "set", "dev", interface, "up"))
    held = f"{address}/{wanted.prefixlen}"
    answer = [info for each in _shown("address", "dev", interface) for info in each["addr_info"]]
    if held not in {f"{info.get('local')}/{info.get('prefixlen')}" for info in answer}:
        command = ("ip", "address", "replace", held, "dev", interface)
        yield Setting(f"{interface} has address {held}", command)
    route = {"dst": str(wanted), "dev": interface, "prefsrc": str(address)}
    if not any(route.items() <= found.items() for found in _shown("route", "table", table)):
        path = (str(wanted), "dev", interface, "src", str(address), "table", table)
        yield Setting(f"{interface} has routes of its own", ("ip", "route", "replace", *path))
    rules = _shown("rule")
    if not any((r.get("src"), str(r.get("table"))) == (str(address), table) for r in rules):
        rule = ("ip", "rule", "add", "from", str(address), "table", table, "priority", priority)
        yield Setting(f"packets of {address} leave by {interface}", rule)
    for name, text, why in KERNEL:
        setting = system_path("/proc/sys/net/ipv4/conf") / interface / name
        if first_line(setting) != text:
            yield Setting(f"{interface}: {name} {text}, {why}", FileText(setting, text))


def _shown(what: str, *words: str) -> list[dict[str, Any]]:
    """Return iproute2's output on an object; nothing where there is none, as for a new table."""
    code, text = run("ip", "-json", "-4", what, "show", *words)
    found = json.loads(text) if not code and text else []
    return [entry for entry in found if entry]
