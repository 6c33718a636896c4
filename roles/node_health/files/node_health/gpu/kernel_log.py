"""The kernel's log since the last run: XID errors of NVIDIA GPUs, RAS errors of AMD's.

An error that drains stays a finding until the machine was restarted or it was acknowledged: the log
has it once, the GPU is as broken at the next run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..finding import CheckIncomplete, Finding, note
from ..probe import Probe

_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): ([0-9]+)")
_AMD = re.compile(r"amdgpu ([0-9a-fA-F:.]+): .*(uncorrectable hardware errors|GPU reset begin)")
_MOST_KEPT = 50


def check_kernel_log(probe: Probe, memory: dict[str, Any]) -> Iterator[Finding]:
    """Yield this boot's errors that are still open, and a note for the others that are new."""
    boot = probe.read("/proc/sys/kernel/random/boot_id")
    if memory.get("boot") != boot:
        memory.clear()
        memory["boot"] = boot
    existing: dict[str, str] = memory.setdefault("standing", {})
    drains = _draining()
    for message in _since(probe, memory):
        xid, amd = _XID.search(message), _AMD.search(message)
        if xid and xid[2] in drains and len(existing) < _MOST_KEPT:
            existing[f"{xid[1]} {xid[2]}"] = f"XID {xid[2]} of GPU {xid[1]}: {drains[xid[2]]}"
        elif amd and len(existing) < _MOST_KEPT:
            existing[f"{amd[1]} {amd[2]}"] = f"GPU {amd[1]}: {amd[2]}"
        elif xid:
            yield note("xid", f"XID {xid[2]} of GPU {xid[1]}")
    for message in existing.values():
        yield Finding("xid", message)


def _since(probe: Probe, memory: dict[str, Any]) -> Iterator[str]:
    """Yield messages after the recorded place; a place that is gone means the whole boot."""
    command = ["journalctl", "--dmesg", "--boot", "--output=json", "--no-pager", "--quiet"]
    cursor = memory.get("cursor")
    try:
        text = probe.run(*command, *([f"--after-cursor={cursor}"] if cursor else []))
    except CheckIncomplete:
        if not cursor:
            raise
        text = probe.run(*command)
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise CheckIncomplete(f"journalctl answers what can't be read: {line[:100]}") from error
        memory["cursor"] = entry.get("__CURSOR", memory.get("cursor"))
        message = entry.get("MESSAGE")
        if isinstance(message, str):
            yield message


def _draining() -> dict[str, str]:
    """Return XID -> what it means, for those that keep a node from jobs."""
    data = json.loads(Path(__file__).with_name("xids.json").read_text())
    return {str(code): str(meaning) for code, meaning in data["drains"].items()}
