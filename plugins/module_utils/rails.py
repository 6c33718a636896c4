"""Which RDMA devices of a node are its rails: the NICs that carry its GPUs' traffic.

Ports for storage, management and the front end are none, whatever their protocol and speed. Where
the rails aren't named, the kernel's files identify them: a rail is behind a PCIe switch with a GPU;
where no NIC is (virtual machines, Grace), link layer and rate must leave as many as the machine
type has. (NVIDIA's NVSentinel identifies compute NICs by the same signs: docs of its NIC health
monitor, read 2026-11.)

The role node_health has this file by a link: its program stores the list in `RECORD`, from where
others (these modules, jobs' environment, the smoke test) read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

RECORD = "/var/lib/gcluster/rails"
"""The rails of a node, one device a line, in the rails' order."""
LINK_LAYERS = {"infiniband": "InfiniBand", "roce": "Ethernet"}
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_GPUS = re.compile(r"0x10de 0x03(00|02)|0x1002 0x(0300|0302|0380|1200)")
"""Vendor and class of GPUs: 3D controllers of NVIDIA, processing accelerators of AMD (lspci)."""


class Port(NamedTuple):
    """The first port of an RDMA device."""

    layer: str
    """InfiniBand or Ethernet."""
    is_active: bool
    gbps: float
    """Its current rate; of a port that is down as the driver reports it."""


def natural(name: str) -> list[int | str]:
    """Return a key that sorts mlx5_10 after mlx5_9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def ports_of(root: Path) -> dict[str, Port]:
    """Return device -> its first port, from /sys below `root`."""
    return {
        path.parts[-4]: Port(
            layer=_text(path),
            is_active=_text(path.with_name("state")).endswith("ACTIVE"),
            gbps=_number(_text(path.with_name("rate"))),
        )
        for path in (root / "sys/class/infiniband").glob("*/ports/1/link_layer")
    }


def recorded_rails(root: Path, count: int = 0) -> list[str]:
    """Return the rails that the health check has stored; none before its first run.

    A list with another number of rails than expected counts as none; 0: any number.
    """
    names = _text(root / RECORD.lstrip("/")).split()
    return names if count in {0, len(names)} else []


def record_rails(root: Path, names: Iterable[str]) -> None:
    """Store the rails, readable by all; none: delete the list.

    Raises:
        OSError: the file can't be written.
    """
    path = root / RECORD.lstrip("/")
    text = "".join(f"{name}\n" for name in names)
    if not text:
        path.unlink(missing_ok=True)
    elif text.split() != _text(path).split():
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o644)
        new.replace(path)


def find_rails(
    root: Path, ports: Mapping[str, Port], kind: str, count: int, gbps: float
) -> list[str]:
    """Return the rails in the order of their numbers; none where they are ambiguous.

    Args:
        root: of the node's files.
        ports: every RDMA device with its first port.
        kind: infiniband or roce.
        count: rails that the machine has; 0: not known.
        gbps: rate of each; 0: not known. A port that is up and slower is for something else, but
            where all NICs near GPUs are as many as the rails, a slow one is a rail at fault.
    """
    chosen, are_beside = candidates(root, ports, kind)
    fast = [name for name in chosen if not (ports[name].is_active and ports[name].gbps < gbps)]
    up = [name for name in fast if ports[name].is_active]
    if not count:
        return fast if are_beside else []
    return next((names for names in (chosen, fast, up) if len(names) == count), [])


def candidates(root: Path, ports: Mapping[str, Port], kind: str) -> tuple[list[str], bool]:
    """Return candidates of rails, and whether that is because they are near GPUs."""
    mine = _cards(root, (name for name, port in ports.items() if port.layer == LINK_LAYERS[kind]))
    switches = _switches(root)
    nearest = [name for name in mine if switches & _bridges(_device(root, name))]
    return nearest or mine, bool(nearest)


def _cards(root: Path, names: Iterable[str]) -> list[str]:
    """Return the devices without virtual functions and without second devices of one function.

    ConnectX-8 has such a one, smi1 next to mlx5_0 (Mellanox/rdmamap#17, read 2026-11).
    """
    found: dict[Path, str] = {}
    for name in sorted(names, key=natural):
        device = _device(root, name)
        if not (device / "physfn").exists():
            found.setdefault(device, name)
    return list(found.values())


def _device(root: Path, name: str) -> Path:
    """Return the PCI device behind an RDMA device: its path names every bridge above it."""
    return (root / "sys/class/infiniband" / name / "device").resolve()


def _bridges(device: Path) -> set[str]:
    """Return the PCI bridges above a device."""
    return {part for part in device.parts[:-1] if _PCI.fullmatch(part)}


def _switches(root: Path) -> set[str]:
    """Return the PCI bridges above the node's GPUs."""
    return {
        bridge
        for path in (root / "sys/bus/pci/devices").glob("*")
        if _GPUS.match(f"{_text(path / 'vendor')} {_text(path / 'class')}")
        for bridge in _bridges(path.resolve())
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _number(text: str) -> float:
    found = re.match(r"[0-9.]+", text)
    return float(found[0]) if found else 0
