"""What a node's RDMA adapters report of themselves: links, rails, interfaces, firmware."""

from __future__ import annotations

import re

from .interface_settings import SettingError, address_in
from .node import first_line, run, system_path
from .rails import LINK_LAYERS, Port, find_rails, natural, recorded_rails
from .state import Failed

Adapters = dict[str, dict[str, str]]
"""Device -> ibstat's values for it and its first port."""
NVIDIA = "mlx5_core"
"""Driver of NVIDIA's adapters."""


def interface_of(device: str) -> str:
    """Return the network interface of an RDMA device; "" where it has none."""
    folder = system_path("/sys/class/infiniband") / device / "device/net"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return names[0] if names else ""


def driver_of(device: str) -> str:
    """Return the kernel's driver of an RDMA device's adapter; "" where it isn't known."""
    link = system_path("/sys/class/infiniband") / device / "device/driver"
    return link.resolve().name if link.is_symlink() else ""


def gids(device: str) -> dict[int, str]:
    """Return index -> IPv4 address of the GIDs of RoCE v2 that an RDMA device's port has."""
    port = system_path("/sys/class/infiniband") / device / "ports/1"
    found = {}
    for file in (port / "gid_attrs/types").glob("[0-9]*"):
        gid = first_line(port / "gids" / file.name)
        if first_line(file) == "RoCE v2" and gid.startswith("0000:0000:0000:0000:0000:ffff:"):
            number = bytes.fromhex(gid[-9:].replace(":", ""))
            found[int(file.name)] = ".".join(str(byte) for byte in number)
    return dict(sorted(found.items()))


def interface_file(interface: str, name: str) -> str:
    """Return the content of a network interface's file of the kernel."""
    return first_line(system_path("/sys/class/net") / interface / name)


def adapters() -> tuple[Adapters, str]:
    """Return device -> ibstat's values for it and its first port; a message when it fails."""
    code, text = run("ibstat")
    if code:
        return {}, f"ibstat doesn't answer: {text}"
    found: Adapters = {}
    device: dict[str, str] | None = None
    for line in text.splitlines():
        named = re.match(r"CA '(.*)'", line)
        if named:
            device = found.setdefault(named[1], {})
        elif device is not None and ":" in line:
            key, _, value = line.strip().partition(":")
            device.setdefault(key.lower(), value.strip())
    return found, ""


def rails(
    kind: str, devices: list[str], gbps: float = 0, count: int = 0
) -> tuple[Adapters, list[str]]:
    """Return the devices of the rails with their values, and the errors.

    Devices that aren't named are those that the health check has stored, or that are identifiable.
    Else they are all of the kind, in the order of their numbers, without those that are up and
    slower than a rail (front end, storage).
    """
    found, silent = adapters()
    if silent:
        return {}, [silent]
    layer = LINK_LAYERS[kind]
    of_kind = [name for name, port in found.items() if port.get("link layer") == layer]
    chosen = devices or _known_rails(found, kind, count, gbps)
    if not chosen:
        ports = {name: _port(found[name]) for name in of_kind}
        chosen = [name for name, port in ports.items() if not (port.is_active and port.gbps < gbps)]
        chosen.sort(key=natural)
    wrong = [f"there is no device {name}" for name in chosen if name not in found]
    wrong += [
        f"{name} has link type {found[name].get('link layer')}, not {layer}"
        for name in chosen
        if name in found and name not in of_kind
    ]
    return {name: found[name] for name in chosen if name in found}, wrong


def _known_rails(found: Adapters, kind: str, count: int, gbps: float) -> list[str]:
    root = system_path("/")
    ports = {name: _port(port) for name, port in found.items()}
    return recorded_rails(root, count) or find_rails(root, ports, kind, count, gbps)


def _port(port: dict[str, str]) -> Port:
    return Port(
        layer=port.get("link layer", ""),
        is_active=port.get("state") == "Active",
        gbps=float(port.get("rate") or 0),
    )


def link_differences(
    kind: str, devices: list[str], count: int, gbps: float
) -> tuple[Adapters, list[str]]:
    """Return the rails and all errors of their links.

    Where the rails can't be distinguished from other adapters, those may be down or slower.
    """
    chosen, wrong = rails(kind, devices, gbps, count)
    if len(chosen) < count and not devices and not wrong:
        chosen, wrong = rails(kind, devices)
    if not chosen:
        return {}, wrong or [f"no adapter has link type {LINK_LAYERS[kind]}"]
    bad = {name: why for name, port in chosen.items() if (why := link_fault(port, gbps))}
    good, least = len(chosen) - len(bad), max(count, 1)
    if devices or good < least:
        wrong += [f"rail {place(chosen, name)}, {name}: {why}" for name, why in bad.items()]
    if good < least:
        wrong.append(f"{good} rails are up at their rate, not {least}")
    surplus = not devices and len(chosen) > least
    return {n: port for n, port in chosen.items() if not (surplus and n in bad)}, wrong


def link_fault(port: dict[str, str], gbps: float) -> str:
    """Return what is wrong with a port's link, "" when it is as it should be."""
    state, physical = port.get("state", ""), port.get("physical state", "")
    if state != "Active" or physical != "LinkUp":
        return f"the port is {state or 'unknown'}, {physical or 'unknown'}"
    rate = float(port.get("rate") or 0)
    return f"{rate:g} Gb/s, not {gbps:g}" if rate < gbps else ""


def place(chosen: Adapters, name: str) -> int:
    """Return a rail's number, counted from 0."""
    return list(chosen).index(name)


def firmware(chosen: Adapters) -> list[str]:
    """Return a line for each adapter with its firmware, and whether they differ."""
    lines = [
        f"{name} {port.get('ca type', '?')} firmware {port.get('firmware version', '?')}"
        for name, port in chosen.items()
    ]
    kinds: dict[str | None, dict[str | None, list[str]]] = {}
    for name, port in chosen.items():
        versions = kinds.setdefault(port.get("ca type"), {})
        versions.setdefault(port.get("firmware version"), []).append(name)
    for kind, versions in kinds.items():
        if len(versions) > 1:
            message = "; ".join(f"{version} on {', '.join(on)}" for version, on in versions.items())
            lines.append(f"adapters {kind} have different firmware: {message}")
    return lines


def ipoib_address(devices: list[str], network: str) -> tuple[str, str]:
    """Return the first rail's interface, and its address with the prefix of the network.

    Raises:
        Failed: no adapter has link layer InfiniBand, or the first rail has no interface.
    """
    chosen, wrong = rails("infiniband", devices)
    if not chosen:
        raise Failed("; ".join(wrong) or "no adapter's link type is InfiniBand")
    first = next(iter(chosen))
    interface = interface_of(first)
    if not interface:
        raise Failed(f"{first} has no interface of its own: is ib_ipoib loaded?")
    try:
        wanted, address = address_in(network)
    except SettingError as error:
        raise Failed(str(error)) from error
    return interface, f"{address}/{wanted.prefixlen}"
