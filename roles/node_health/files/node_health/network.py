"""NICs and their ports: as many as the machine has, up, at full speed, without growing errors."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from .finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .expected import Nics
    from .probe import Probe

_COUNTERS = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
]
_ETHERNET_COUNTERS = ["rx_crc_errors", "rx_missed_errors", "tx_carrier_errors"]
_LINK_LAYER = {"infiniband": "InfiniBand", "roce": "Ethernet"}
_SPEED_SHARE = 0.99
"""A port that trained to the next lower speed has half; 0.99 forgives roundings."""
_VERBS = frozenset({"infiniband", "roce", "efa"})


def check_nics(
    expected: Nics, probe: Probe, memory: dict[str, Any], *, errors_per_hour: float
) -> Iterator[Finding]:
    """Yield what is wrong with the interfaces of one kind.

    Args:
        expected: of the machine type.
        probe: looks at the node.
        memory: kept from run to run.
        errors_per_hour: how fast a counter of errors may grow.
    """
    ports = _rdma_ports(expected, probe) if expected.kind in _VERBS else _links(probe)
    if len(ports) < expected.count:
        yield Finding("nic-count", f"{len(ports)} of {expected.count} {expected.kind} interfaces")
    for port in ports:
        yield from (_rdma_port if expected.kind in _VERBS else _link)(expected, probe, port)
        yield from _growth(probe, port, memory, errors_per_hour)
    if expected.kind in {"infiniband", "roce"}:
        yield from _pcie(probe, ports)


def _rdma_ports(expected: Nics, probe: Probe) -> list[str]:
    ports = probe.glob("/sys/class/infiniband/*/ports/*")
    if expected.kind == "efa":
        return [port for port in ports if _driver(probe, port) == "efa"]
    layer = _LINK_LAYER[expected.kind]
    return [port for port in ports if probe.read_or(f"{port}/link_layer") == layer]


def _driver(probe: Probe, port: str) -> str:
    """Return the driver of a port's device; uevent also says it where links can't be followed."""
    uevent = probe.read_or(f"{port}/../../device/uevent")
    found = re.search(r"^DRIVER=(.*)$", uevent, re.MULTILINE)
    return found[1] if found else ""


def _rdma_port(expected: Nics, probe: Probe, port: str) -> Iterator[Finding]:
    name = port.split("/")[-3]
    state = probe.read_or(f"{port}/state", "unknown")
    physical = probe.read_or(f"{port}/phys_state", "unknown")
    if not state.endswith("ACTIVE"):
        yield Finding("nic-down", f"{name}: port is {state}, {physical}")
        return
    rate = re.match(r"[0-9.]+", probe.read_or(f"{port}/rate"))
    if expected.gbps and expected.kind != "efa":  # EFA's driver tells no rate of the link
        now = float(rate[0]) if rate else 0
        if now < expected.gbps * _SPEED_SHARE:
            yield Finding("nic-speed", f"{name}: {now:g} of {expected.gbps:g} Gb/s")


def _links(probe: Probe) -> list[str]:
    """Return the Ethernet interfaces that are devices and not a VF, bridge or bond."""
    return [
        path
        for path in probe.glob("/sys/class/net/*")
        if probe.path(f"{path}/device").exists()
        and not probe.path(f"{path}/device/physfn").exists()
        and probe.read_or(f"{path}/type") == "1"
    ]


def _link(expected: Nics, probe: Probe, path: str) -> Iterator[Finding]:
    name = path.rsplit("/", 1)[1]
    state = probe.read_or(f"{path}/operstate", "unknown")
    if state != "up":
        yield Finding("nic-down", f"{name}: {state}")
        return
    speed = probe.read_or(f"{path}/speed", "0")  # Mb/s; clouds' virtual NICs say -1
    if expected.gbps and expected.kind == "ethernet":
        now = int(speed) / 1000 if speed.lstrip("-").isdigit() else 0
        if now < expected.gbps * _SPEED_SHARE:
            yield Finding("nic-speed", f"{name}: {max(now, 0):g} of {expected.gbps:g} Gb/s")


def _growth(
    probe: Probe, port: str, memory: dict[str, Any], errors_per_hour: float
) -> Iterator[Finding]:
    """Yield counters that grew too fast since the last run; a counter may start again at 0."""
    ethernet = "/net/" in port
    folder = f"{port}/statistics" if ethernet else f"{port}/counters"
    names = _ETHERNET_COUNTERS if ethernet else _COUNTERS
    values = {name: probe.read_or(f"{folder}/{name}") for name in names}
    now = {name: int(text) for name, text in values.items() if text.isdigit()}
    before = memory.get(port)
    memory[port] = {"at": time.time(), "counters": now}
    if not before:
        return
    hours = max((time.time() - before["at"]) / 3600, 1 / 60)
    for name, count in now.items():
        rate = (count - before["counters"].get(name, count)) / hours
        allowed = 0 if name == "link_downed" else errors_per_hour
        if rate > allowed:
            device = port.split("/")[4]
            yield Finding("nic-errors", f"{device}: {name} grows by {rate:.0f}/h")


def _pcie(probe: Probe, ports: list[str]) -> Iterator[Finding]:
    for device in sorted({"/".join(port.split("/")[:5]) + "/device" for port in ports}):
        for what in ("speed", "width"):
            now = probe.read_or(f"{device}/current_link_{what}")
            most = probe.read_or(f"{device}/max_link_{what}")
            if now and most and _number(now) < _number(most):
                name = device.split("/")[-2]
                yield Finding(f"pcie-{what}", f"{name}: {now} of {most}")


def _number(text: str) -> float:
    found = re.match(r"[0-9.]+", text)
    return float(found[0]) if found else 0
