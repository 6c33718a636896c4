"""Serial numbers by place: a swapped part is a finding until it is acknowledged.

The first run stores the existing parts. A flapping link or a driver that fails to load doesn't
remove a part: what can't be read is a failure of the run, and stored values are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .expected import Expected
from .finding import Finding, note
from .gpu.amd import gpus_of as amd_gpus
from .gpu.nvidia import gpus_of as nvidia_gpus
from .probe import Probe

_UNKNOWN = frozenset({"", "N/A", "0", "[N/A]", "None", "Not Specified", "Default string"})


def parts_of(expected: Expected, probe: Probe) -> dict[str, str]:
    """Return place -> serial number: "gpu 1B:00.0", "nic mlx5_0", "board", "disk nvme0n1".

    A GPU in a PCI domain of its own is named with it: "gpu 0008:01:00.0" (Grace, Azure).

    A simulated node has the disks and the board of the machine it runs on, which are not its own.
    """
    if expected.simulated:
        return {}
    found: dict[str, str] = {}
    if expected.gpus and expected.gpus.vendor == "nvidia":
        for gpu in nvidia_gpus(probe):
            serial = (gpu.findtext("serial") or "").strip()
            uuid = (gpu.findtext("uuid") or "").strip()
            place = gpu.get("id", "?").removeprefix("0000").removeprefix("0000:")
            found[f"gpu {place}"] = uuid if serial in _UNKNOWN else f"{serial} {uuid}"
    elif expected.gpus:
        for device in amd_gpus(probe):
            found[f"gpu {device.split('/')[-2]}"] = probe.read_or(f"{device}/unique_id")
    for path in probe.glob("/sys/class/infiniband/*/node_guid"):
        found[f"nic {path.split('/')[-2]}"] = probe.read(path)
    found["board"] = probe.read_or("/sys/class/dmi/id/board_serial")
    found["chassis"] = probe.read_or("/sys/class/dmi/id/product_serial")
    for pattern in ("/sys/block/*/device/serial", "/sys/block/*/device/wwid"):
        for path in probe.glob(pattern):
            found.setdefault(f"disk {path.split('/')[3]}", probe.read_or(path))
    return {place: serial for place, serial in found.items() if serial not in _UNKNOWN}


def check_parts(kept: Mapping[str, str], found: Mapping[str, str]) -> Iterator[Finding]:
    """Yield places whose part was changed or removed; a note for new ones.

    Disks may change names between boots, so they are identified by their serials alone.
    """
    disks = _disks(kept), _disks(found)
    for serial in sorted(disks[0] - disks[1]):
        yield Finding("part-swapped", f"disk {serial} is gone")
    for serial in sorted(disks[1] - disks[0]):
        yield Finding("part-swapped", f"disk {serial} is new")
    for place, serial in kept.items():
        if place.startswith("disk "):
            continue
        now = found.get(place)
        if now is None:
            yield Finding("part-missing", f"{place} ({serial}) is gone")
        elif now != serial:
            yield Finding("part-swapped", f"{place} was {serial}, is {now}")
    for place in sorted(found.keys() - kept.keys()):
        if not place.startswith("disk "):
            yield note("part-new", f"{place} ({found[place]}) is new")


def _disks(parts: Mapping[str, str]) -> set[str]:
    return {serial for place, serial in parts.items() if place.startswith("disk ")}
