"""The stamps of this node, as lifecycle/nodes/converge/stamps.py reads them over SSH."""

from __future__ import annotations

import os
import re
from pathlib import Path

from self_converge.settings import STAMPS

WORN = "worn"
_SEEN_AFTER_BOOT = ("join", "verify")
_STEP = re.compile(r"\w+\.(?:preflight|install|configure|join|verify)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def read_stamps() -> dict[str, str]:
    """Return step -> digest; WORN where the node was started since."""
    started = _started()
    found = {}
    for path in STAMPS.glob("*.*") if STAMPS.is_dir() else ():
        digest = path.read_text(encoding="ascii", errors="replace").strip()
        if _STEP.fullmatch(path.name) and _DIGEST.fullmatch(digest):
            doubtful = path.suffix[1:] in _SEEN_AFTER_BOOT
            worn = doubtful and int(path.stat().st_mtime) < started
            found[path.name] = WORN if worn else digest
    return found


def _started() -> int:
    """Return the first process's start in seconds since 1970."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    ticks = int(Path("/proc/1/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    return booted + ticks // os.sysconf("SC_CLK_TCK")
