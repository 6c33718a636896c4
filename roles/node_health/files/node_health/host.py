"""The machine around the GPUs: memory, its errors, the clock, disks, and mounts that answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .expected import Mount, Program
from .finding import CheckIncomplete, Finding, note
from .probe import Probe, give_up, is_alive, start_of

MOUNT_TIMEOUT_S = 8.0
"""A file system under load answers a statfs late; one whose server is gone never."""
WORN_PERCENT = 100
"""percentage_used of NVMe: 100 is the life that the vendor promises (NVM Express Base, SMART)."""
_LOCAL = frozenset({"ext4", "xfs", "btrfs", "ext3", "vfat", "f2fs"})
MEMORY_SHARE = 0.95
"""Share of the nominal memory that the kernel must report (slurm.conf's RealMemory is the same)."""
_TRACKING_FIELDS = 14


def check_memory(gib: float, probe: Probe) -> Iterator[Finding]:
    """Yield missing memory, and uncorrectable errors of it (EDAC)."""
    found = re.search(r"^MemTotal:\s+([0-9]+) kB", probe.read("/proc/meminfo"), re.MULTILINE)
    if found is None:
        raise CheckIncomplete("/proc/meminfo has no MemTotal")
    there = int(found[1]) / 2**20
    if gib and there < gib * MEMORY_SHARE:
        yield Finding("memory-size", f"{there:.0f} of {gib:g} GiB memory")
    for path in probe.glob("/sys/devices/system/edac/mc/mc*/ue_count"):
        count = int(probe.read(path))
        if count:
            yield Finding("memory-ecc", f"{path.split('/')[-2]}: {count} uncorrectable errors")


def check_program(program: Program, probe: Probe, _: dict[str, Any]) -> Iterator[Finding]:
    """Yield the finding of a program of the cluster's own, which prints it as its last line."""
    path = str(probe.path(program.path))
    try:
        probe.run(path)
    except CheckIncomplete as why:
        yield Finding(f"hook-{program.name}", str(why).replace(path, program.name))


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


class Line:
    """A line of /proc/mounts."""

    def __init__(self, text: str) -> None:
        """Read device, place, type and options; blanks are written as octal numbers."""
        parts = [re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), p) for p in text.split()]
        self.device, self.place, self.type, options = parts[:4]
        self.options = options.split(",")


def mounted(probe: Probe) -> dict[str, Line]:
    """Return place -> what is mounted there last."""
    lines = map(Line, filter(None, probe.read("/proc/mounts").splitlines()))
    return {line.place: line for line in lines}


def check_mounts(
    expected: Sequence[Mount], probe: Probe, memory: dict[str, Any]
) -> Iterator[Finding]:
    """Yield mounts that are missing, of another type, or don't answer; one by one, each in time."""
    there = mounted(probe)
    for mount in expected:
        line = there.get(mount.path)
        if line is None:
            yield Finding("mount-missing", f"{mount.path} is not mounted")
        elif not line.type.startswith(mount.type):
            yield Finding("mount-type", f"{mount.path} is {line.type}, not {mount.type}")
        else:
            yield from _answers(probe, mount.path, memory)


def _answers(probe: Probe, path: str, memory: dict[str, Any]) -> Iterator[Finding]:
    """Query in a separate process, and never start a second one while one hangs."""
    hung = memory.get(path, {})
    if is_alive(int(hung.get("pid", 0)), str(hung.get("started", ""))):
        since = time.strftime("%H:%M UTC", time.gmtime(hung["since"]))
        yield Finding("mount-hung", f"{path} has not answered since {since}")
        return
    memory.pop(path, None)
    ask = "import os,sys; os.statvfs(sys.argv[1]); os.listdir(sys.argv[1])"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", ask, str(probe.path(path))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, error = process.communicate(timeout=MOUNT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        started = start_of(process.pid)
        give_up(process)
        if process.poll() is None:
            memory[path] = {"pid": process.pid, "started": started, "since": time.time()}
        yield Finding("mount-hung", f"{path} did not answer within {MOUNT_TIMEOUT_S:g} s")
        return
    if process.returncode:
        lines = error.decode(errors="replace").strip().splitlines() or ["no reason"]
        yield Finding("mount-broken", f"{path}: {lines[-1][:200]}")


def check_disks(paths: Sequence[str], most_percent: float, probe: Probe) -> Iterator[Finding]:
    """Yield file systems that are full or became read-only."""
    for path in paths:
        try:
            stat = os.statvfs(probe.path(path))
        except OSError as error:
            raise CheckIncomplete(f"{path}: {error.strerror}") from error
        usable = stat.f_blocks - stat.f_bfree + stat.f_bavail
        used = 100 * (1 - stat.f_bavail / usable) if usable else 0
        if used > most_percent:
            yield Finding("disk-full", f"{path} is {used:.0f} % full")
        if stat.f_files and stat.f_favail * 100 < stat.f_files * (100 - most_percent):
            yield Finding("disk-full", f"{path} has {stat.f_favail} inodes left")
    for line in mounted(probe).values():
        if line.type in _LOCAL and "ro" in line.options and line.place in paths:
            yield Finding("disk-read-only", f"{line.place} ({line.device}) is read-only")


def check_smart(probe: Probe) -> Iterator[Finding]:
    """Yield disks that report a failure; without smartctl only a note."""
    disks = [path.split("/")[3] for path in probe.glob("/sys/block/*/device")]
    disks = [disk for disk in disks if not disk.startswith(("loop", "sr"))]
    if disks and not probe.has("smartctl"):
        yield note("smart", "smartctl is not installed: the disks' own view is unknown")
        return
    for disk in disks:
        # The exit code is a bit mask of what it found, and the JSON has the same as text.
        text = probe.run("smartctl", "--json", "-H", "-A", f"/dev/{disk}", accept=tuple(range(256)))
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise CheckIncomplete(f"smartctl answers what can't be read of {disk}") from error
        yield from _smart(disk, answer)


def _smart(disk: str, answers: Mapping[str, Any]) -> Iterator[Finding]:
    passed = answers.get("smart_status", {}).get("passed")
    nvme = answers.get("nvme_smart_health_information_log", {})
    if passed is False:
        yield Finding("smart", f"{disk} says it fails")
    elif passed is None:
        yield note("smart", f"{disk} tells nothing")
    elif nvme.get("critical_warning"):
        yield Finding("smart", f"{disk}: critical warning {nvme['critical_warning']:#x}")
    elif nvme.get("media_errors") or nvme.get("percentage_used", 0) >= WORN_PERCENT:
        worn, errors = nvme.get("percentage_used", 0), nvme.get("media_errors", 0)
        yield note("smart", f"{disk}: {worn} % of its life used, {errors} media errors")
