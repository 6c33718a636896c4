"""NICs: the rails by device, up, at full speed, without growing errors; others as many as expected.

A port without an expectation (for storage, without a cable, of the BMC) is not checked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from typing import Any

from .expected import Nics
from .finding import Finding, note
from .probe import Probe
from .rails import LINK_LAYERS, Port, candidates, find_rails, ports_of, record_rails, recorded_rails

_COUNTERS = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
]
_ETHERNET_COUNTERS = ["rx_crc_errors", "rx_missed_errors", "tx_carrier_errors"]
_SPEED_SHARE = 0.99
"""A port that trained to the next lower speed has half; 0.99 forgives roundings."""
_DRIVERS = {"ena": "ena", "gvnic": "gve"}
"""Drivers whose interfaces are of the kind alone."""
_VIRTUAL = frozenset({"ena", "gve", "hv_netvsc", "virtio_net", "vmxnet3"})
"""Drivers that report no link speed: a cloud's speed is an allowance."""


def check_nics(
    expected: Nics,
    probe: Probe,
    memory: dict[str, Any],
    *,
    others: Sequence[Nics] = (),
    errors_per_hour: float,
) -> Iterator[Finding]:
    """Yield the problems of the interfaces of one kind.

    Args:
        expected: of the machine type.
        probe: reads the node.
        memory: kept from run to run.
        others: all that the machine has, except those of rails.
        errors_per_hour: how fast a counter of errors may grow.
    """
    rails = {name for nics in others for name in rails_of(nics, probe)}
    if is_rail(expected):
        ports = yield from _rails(expected, probe)
        for port in ports:
            yield from _rdma_port(expected, probe, port)
        yield from _pcie(probe, ports)
    elif expected.kind == "efa":
        ports = [
            path for path in probe.glob("/sys/class/infiniband/*") if _driver(probe, path) == "efa"
        ]
        ports = [f"{path}/ports/1" for path in ports]
        yield from _counted(expected, ports)
        for port in ports:
            yield from _rdma_port(expected, probe, port)
    elif expected.kind == "infiniband":
        ports = []
        yield from _enough(
            expected, {n: p for n, p in ports_of(probe.root).items() if n not in rails}
        )
    else:
        ports = _links(expected, probe, rails)
        yield from _counted(expected, ports)
        if len(ports) >= expected.count:
            yield from _working_links(expected, probe, ports)
    own = len(ports) <= expected.count  # else errors may be of an unused interface
    for port in ports:
        for finding in _growth(probe, port, memory, errors_per_hour):
            yield finding if own else note(finding.code, finding.message)


def is_rail(nics: Nics) -> bool:
    """Return whether these are rails with names: EFA and Google's NICs are identified by kind."""
    return nics.kind in LINK_LAYERS and not nics.front_end


def rails_of(expected: Nics, probe: Probe) -> list[str]:
    """Return the RDMA devices of the rails: as they are named, as kept, else as found."""
    if not is_rail(expected):
        return []
    ports = ports_of(probe.root)
    return (
        list(expected.devices)
        or recorded_rails(probe.root, expected.count)
        or find_rails(probe.root, ports, expected.kind, expected.count, expected.gbps)
    )


def _rails(expected: Nics, probe: Probe) -> Generator[Finding, None, list[str]]:
    """Yield rails that are missing, and return the ports of the others; keep the list for all."""
    names, ports = rails_of(expected, probe), ports_of(probe.root)
    if not names:
        may_be, _ = candidates(probe.root, ports, expected.kind)
        yield from _enough(expected, {name: ports[name] for name in may_be})
        return []
    try:
        record_rails(probe.root, names)
    except OSError as error:
        yield note("rails", f"the list of rails can't be kept: {error.strerror}")
    layer = LINK_LAYERS[expected.kind]
    missing = [name for name in names if name not in ports or ports[name].layer != layer]
    if missing:
        wrong = ", ".join(
            f"{n} has link type {ports[n].layer}" if n in ports else n for n in missing
        )
        many = f"{len(names) - len(missing)} of {len(names)} {expected.kind} rails"
        yield Finding("nic-count", f"{many}, not {wrong}")
    return [f"/sys/class/infiniband/{name}/ports/1" for name in names if name not in missing]


def _enough(expected: Nics, ports: Mapping[str, Port]) -> Iterator[Finding]:
    """Yield findings where the ports aren't named: too few candidates."""
    least = expected.gbps * _SPEED_SHARE
    mine = {name: p for name, p in ports.items() if p.layer == LINK_LAYERS[expected.kind]}
    good = [name for name, port in mine.items() if port.is_active and port.gbps >= least]
    what = f"{expected.kind} {'interfaces' if expected.front_end else 'rails'}"
    if len(mine) < expected.count:
        yield Finding("nic-count", f"{len(mine)} of {expected.count} {what}")
    elif len(good) < expected.count:
        others = ", ".join(
            f"{name}: {f'{port.gbps:g} Gb/s' if port.is_active else 'down'}"
            for name, port in sorted(mine.items())
            if name not in good
        )
        code = "nic-speed" if all(port.is_active for port in mine.values()) else "nic-down"
        yield Finding(
            code, f"{len(good)} of {expected.count} {what} are as they should be; {others}"
        )
    elif not expected.front_end:
        yield note(
            "rails", f"{len(good)} ports may be the {expected.count} rails: name them (rdma)"
        )


def _counted(expected: Nics, ports: Sequence[str]) -> Iterator[Finding]:
    if len(ports) < expected.count:
        yield Finding("nic-count", f"{len(ports)} of {expected.count} {expected.kind} interfaces")


def _driver(probe: Probe, folder: str) -> str:
    """Return the driver of a device; uevent also has it where links can't be followed."""
    uevent = probe.read_or(f"{folder}/device/uevent")
    found = re.search(r"^DRIVER=(.*)$", uevent, re.MULTILINE)
    return found[1] if found else ""


def _rdma_port(expected: Nics, probe: Probe, port: str) -> Iterator[Finding]:
    name = port.split("/")[-3]
    state = probe.read_or(f"{port}/state", "unknown")
    physical = probe.read_or(f"{port}/phys_state", "unknown")
    if not state.endswith("ACTIVE"):
        yield Finding("nic-down", f"{name}: port is {state}, {physical}")
        return
    if expected.gbps and expected.kind != "efa":  # EFA's driver reports no link rate
        now = _number(probe.read_or(f"{port}/rate"))
        if now < expected.gbps * _SPEED_SHARE:
            yield Finding("nic-speed", f"{name}: {now:g} of {expected.gbps:g} Gb/s")


def _links(expected: Nics, probe: Probe, rails: Collection[str]) -> list[str]:
    """Return the candidate Ethernet interfaces: devices, and no VF, bridge or bond.

    Nor a rail's own interface, one of USB (the way to the BMC), or the virtual function below
    Azure's interface, which has that for its master.
    """
    of_rails = {
        path.rsplit("/", 1)[1]
        for rail in rails
        for path in probe.glob(f"/sys/class/infiniband/{rail}/device/net/*")
    }
    return [
        path
        for path in probe.glob("/sys/class/net/*")
        if probe.path(f"{path}/device").exists()
        and not probe.path(f"{path}/device/physfn").exists()
        and probe.read_or(f"{path}/type") == "1"
        and not probe.path(f"{path}/master/device").exists()
        and path.rsplit("/", 1)[1] not in of_rails
        and "/usb" not in str(probe.path(f"{path}/device").resolve())
        and (driver := _driver(probe, path)) == _DRIVERS.get(expected.kind, driver)
    ]


def _working_links(expected: Nics, probe: Probe, paths: list[str]) -> Iterator[Finding]:
    """Yield what is wrong with interfaces where fewer than are expected work."""
    bad: dict[str, str] = {}
    codes = set()
    for path in paths:
        name = path.rsplit("/", 1)[1]
        state = probe.read_or(f"{path}/operstate", "unknown")
        speed = probe.read_or(f"{path}/speed", "-1")  # Mb/s; -1: not known
        now = int(speed) / 1000 if speed.isdigit() else 0
        if state != "up":
            bad[name] = state
            codes.add("nic-down")
        elif _driver(probe, path) not in _VIRTUAL and 0 < now < expected.gbps * _SPEED_SHARE:
            bad[name] = f"{now:g} Gb/s"
            codes.add("nic-speed")
    good = len(paths) - len(bad)
    if good < expected.count:
        wrong = ", ".join(f"{name}: {why}" for name, why in bad.items())
        many = f"{good} of {expected.count} {expected.kind} interfaces work"
        yield Finding(min(codes), f"{many}: {wrong}")


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
            # A virtual function reports no link of its own: 0 or "Unknown".
            if 0 < _number(now) < _number(most):
                name = device.split("/")[-2]
                yield Finding(f"pcie-{what}", f"{name}: {now} of {most}")


def _number(text: str) -> float:
    found = re.match(r"[0-9.]+", text)
    return float(found[0]) if found else 0
