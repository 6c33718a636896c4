"""AMD GPUs, from the files of the amdgpu driver: how many, RAS errors, temperature, PCIe.

No tool of ROCm is needed: the driver's files are the same on every version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..expected import Gpus
from ..finding import Finding
from ..probe import Probe

VENDOR = "0x1002"
MEMORY_SHARE = 0.95


def gpus_of(probe: Probe) -> list[str]:
    """Return the device folders of the GPUs, without partitions of the same one."""
    devices = [f"{path}/device" for path in probe.glob("/sys/class/drm/renderD*")]
    mine = [device for device in devices if probe.read_or(f"{device}/vendor") == VENDOR]
    unique = {probe.read_or(f"{device}/unique_id", device): device for device in reversed(mine)}
    return sorted(unique.values())


def check_amd(expected: Gpus, probe: Probe) -> Iterator[Finding]:
    """Yield what is wrong with the GPUs."""
    gpus = gpus_of(probe)
    if len(gpus) != expected.count:
        yield Finding("gpu-count", f"{len(gpus)} of {expected.count} GPUs")
    for gpu in gpus:
        name = gpu.split("/")[-2]
        total = int(probe.read_or(f"{gpu}/mem_info_vram_total", "0"))
        if expected.memory_gib and total < expected.memory_gib * 2**30 * MEMORY_SHARE:
            yield Finding("gpu-memory", f"{name}: {total >> 30} GiB of {expected.memory_gib:g}")
        yield from _ras(probe, gpu, name)
        yield from _temperatures(probe, gpu, name)
        width = probe.read_or(f"{gpu}/current_link_width")
        widest = probe.read_or(f"{gpu}/max_link_width")
        if width != widest:
            yield Finding("pcie-width", f"{name}: x{width} of x{widest}")


def _ras(probe: Probe, gpu: str, name: str) -> Iterator[Finding]:
    """Each block's file has "ue: 0" and "ce: 0" on separate lines."""
    counts = probe.glob(f"{gpu}/ras/*_err_count")
    if not counts:
        yield Finding("ecc-unknown", f"{name}: no RAS counts")
    for path in counts:
        found = re.search(r"ue:\s*([0-9]+)", probe.read(path))
        if found and int(found[1]):
            block = path.rsplit("/", 1)[1].replace("_err_count", "")
            yield Finding("ecc-uncorrectable", f"{name}: {found[1]} in {block}")


def _temperatures(probe: Probe, gpu: str, name: str) -> Iterator[Finding]:
    for path in probe.glob(f"{gpu}/hwmon/hwmon*/temp*_crit"):
        most, now = int(probe.read(path)), int(probe.read(path.replace("_crit", "_input")))
        if most and now >= most:
            yield Finding("gpu-temperature", f"{name}: {now / 1000:g} C of {most / 1000:g} C")
