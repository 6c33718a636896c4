"""The machine around the GPUs: memory, its errors, and the clock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .finding import CheckIncomplete, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .probe import Probe

MEMORY_SHARE = 0.95
"""Share of the nominal memory that the kernel must tell (slurm.conf's RealMemory is the same)."""
_TRACKING_FIELDS = 14


def check_memory(gib: float, probe: Probe) -> Iterator[Finding]:
    """Yield missing memory, and uncorrectable errors of it (EDAC)."""
    found = re.search(r"^MemTotal:\s+([0-9]+) kB", probe.read("/proc/meminfo"), re.MULTILINE)
    if found is None:
        raise CheckIncomplete("/proc/meminfo tells no MemTotal")
    there = int(found[1]) / 2**20
    if gib and there < gib * MEMORY_SHARE:
        yield Finding("memory-size", f"{there:.0f} of {gib:g} GiB memory")
    for path in probe.glob("/sys/devices/system/edac/mc/mc*/ue_count"):
        count = int(probe.read(path))
        if count:
            yield Finding("memory-ecc", f"{path.split('/')[-2]}: {count} uncorrectable errors")


def check_clock(most_s: float, probe: Probe) -> Iterator[Finding]:
    """Yield a clock that is not kept, or is off (`chronyc -c tracking`, chrony 3 and later).

    Its fields: reference id and name, stratum, reference time, offset of the system's clock in s,
    last and RMS offset, frequency, residual frequency, skew, root delay, root dispersion, update
    interval, leap status.
    """
    fields = probe.run("chronyc", "-c", "tracking").strip().split(",")
    if len(fields) != _TRACKING_FIELDS:
        raise CheckIncomplete("chronyc tracking answers what can't be read")
    if fields[13] == "Not synchronised":
        yield Finding("clock-unkept", "the clock follows no time server")
    elif abs(float(fields[4])) > most_s:
        yield Finding("clock-skew", f"the clock is off by {abs(float(fields[4])):.3f} s")
