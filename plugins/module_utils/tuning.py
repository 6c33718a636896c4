"""How a machine with GPUs is tuned: what differs, and the functions that set it.

The role tuning installs this file on nodes as well, for the unit that sets all this at boot.

PCI Express: a switch with Access Control Services on routes traffic between GPUs and adapters
through the processor (NCCL user guide, "Troubleshooting", PCI Access Control Services), adapters
read faster in requests of 4096 bytes (NVIDIA, DAQIRI system configuration, MRRS), and writes that
may pass each other don't wait (linux 17347d5430c4, "net/mlx5e: Add support for PCI relaxed
ordering"). Processors: governor performance and no deep idle states (NVIDIA Grace CPU benchmarking
guide; AMD's MLPerf configuration of MI300X, `cpupower idle-set -d 2`), and pages that stay where
they are (`numa_balancing`, in both). All read in 2026-11.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .node import first_line, system_path

SETTINGS = Path("/etc/gcluster/tuning.json")
LONGEST_WAKE_US = 10
"""Idle states that take longer to leave are off: C1 takes 1 to 2 µs, Intel's C6 over 100."""
BRIDGE, READ_BYTES = "0x0604", 4096
"""PCI class of bridges (its prefix), and an adapter's maximum read request."""
ACS, EXPRESS = 0x0D, 0x10
"""Extended capability of Access Control Services, and capability of PCI Express."""
ACS_CONTROL, DEVICE_CONTROL = 6, 8
"""Offsets of their control registers (PCI Express base specification; linux/pci_regs.h)."""
RELAXED, READ_REQUEST, READ_REQUEST_SHIFT = 0x0010, 0x7000, 12
"""Bits of the device control register: relaxed ordering, and the size of read requests."""
ENABLED = 0x007F
"""Bits of the ACS control register; all of them are off where traffic goes the short way."""
FIRST_EXTENDED, LAST = 0x100, 0x1000


class TuningError(Exception):
    """Why something can't be set."""


class Tuned(NamedTuple):
    """Something that differs: what it should be, and the function that sets it."""

    description: str
    set: Callable[[], object]


def differing(settings: dict[str, Any]) -> Iterator[Tuned]:
    """Yield the settings that differ."""
    if settings["processors"]:
        yield from _processors()
    if settings["pcie"]:
        yield from _bridges()
        yield from _adapters()
    if settings["numa_balancing"]:
        path = system_path("/proc/sys/kernel/numa_balancing")
        if first_line(path) not in {"0", ""}:
            yield _file(path, "0", "pages stay on their NUMA node")
    wanted = settings["transparent_hugepages"]
    path = system_path("/sys/kernel/mm/transparent_hugepage/enabled")
    if wanted and f"[{wanted}]" not in first_line(path):
        yield _file(path, wanted, f"transparent huge pages: {wanted}")


def _file(path: Path, text: str, description: str) -> Tuned:
    return Tuned(description, lambda: _write(path, text.encode()))


def _write(path: Path, content: bytes, offset: int = 0) -> None:
    try:
        with path.open("r+b", buffering=0) as file:
            file.seek(offset)
            file.write(content)
    except OSError as error:
        locked = "; under secure boot the kernel keeps it locked" if error.errno == 1 else ""
        raise TuningError(f"{path}: {error.strerror}{locked}") from error


def _processors() -> Iterator[Tuned]:
    """Yield governors and idle states; a machine that decides them itself shows none."""
    root = system_path("/sys/devices/system/cpu")
    slow = [
        path
        for path in root.glob("cpufreq/policy*/scaling_governor")
        if first_line(path) != "performance"
    ]
    if slow:
        yield _files(slow, "performance", f"governor performance on {len(slow)} policies")
    deep = [
        path / "disable"
        for path in root.glob("cpu[0-9]*/cpuidle/state*")
        if int(first_line(path / "latency") or 0) > LONGEST_WAKE_US
        and first_line(path / "disable") == "0"
    ]
    if deep:
        yield _files(deep, "1", f"no idle state over {LONGEST_WAKE_US} µs ({len(deep)} are on)")


def _files(paths: list[Path], text: str, description: str) -> Tuned:
    def write() -> None:
        for path in paths:
            _write(path, text.encode())

    return Tuned(description, write)


def _devices() -> Iterator[tuple[Path, bytes]]:
    """Yield the folder and the configuration space of each PCI device."""
    for folder in sorted(system_path("/sys/bus/pci/devices").glob("*")):
        try:
            yield folder, (folder / "config").read_bytes()
        except OSError:
            continue  # it was taken out


def _bridges() -> Iterator[Tuned]:
    for folder, config in _devices():
        if not first_line(folder / "class").startswith(BRIDGE):
            continue
        found = _extended(config, ACS)
        if found is None:
            continue
        at = found + ACS_CONTROL
        if _word(config, at) & ENABLED:
            what = f"bridge {folder.name}: access control services off"
            yield _register(folder, at, _word(config, at) & ~ENABLED, what)


def _adapters() -> Iterator[Tuned]:
    """Yield the RDMA adapters with smaller read requests, or with strict ordering."""
    size = READ_BYTES.bit_length() - 8  # 128 bytes are 0, 4096 are 5
    for folder, config in _devices():
        found = _capability(config, EXPRESS) if (folder / "infiniband").is_dir() else None
        if found is None:
            continue
        at = found + DEVICE_CONTROL
        control = _word(config, at)
        wanted = control & ~READ_REQUEST | size << READ_REQUEST_SHIFT | RELAXED
        if control != wanted:
            what = f"adapter {folder.name}: reads of {READ_BYTES} bytes, relaxed ordering"
            yield _register(folder, at, wanted, what)


def _register(folder: Path, at: int, value: int, description: str) -> Tuned:
    path = folder / "config"
    return Tuned(description, lambda: _write(path, value.to_bytes(2, "little"), at))


def _word(config: bytes, at: int) -> int:
    return int.from_bytes(config[at : at + 2], "little")


def _capability(config: bytes, wanted: int) -> int | None:
    """Return where a capability is in a configuration space; None: it has none."""
    at = config[0x34] if len(config) > 0x34 else 0  # noqa: PLR2004  # the list's first entry
    for _ in range(48):  # no list is longer: each entry has four bytes at least
        if at < 0x40 or at + 1 >= len(config):  # noqa: PLR2004  # behind the header
            return None
        if config[at] == wanted:
            return at
        at = config[at + 1] & ~3
    return None


def _extended(config: bytes, wanted: int) -> int | None:
    """Return the offset of an extended capability; None: missing, or not readable."""
    at = FIRST_EXTENDED
    for _ in range((LAST - FIRST_EXTENDED) // 4):
        if at < FIRST_EXTENDED or at + 4 > len(config):
            return None
        head = int.from_bytes(config[at : at + 4], "little")
        if head & 0xFFFF == wanted:
            return at
        at = head >> 20
    return None


def main() -> None:
    """Set what differs: the program of the unit gcluster-tuning."""
    try:
        for tuned in list(differing(json.loads(SETTINGS.read_text(encoding="utf-8")))):
            tuned.set()
            sys.stdout.write(f"{tuned.description}\n")
    except TuningError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
