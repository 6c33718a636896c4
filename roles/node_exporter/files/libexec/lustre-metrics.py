#!/usr/bin/python3
"""Write what this node's Lustre client does, for node exporter.

Read by one `lctl get_param`: the states of its connections to MDTs and OSTs (lustre/obdclass,
lprocfs_status.c: current_state, state_history) and what programs read and wrote (llite.*.stats:
name, samples, unit, least, most, sum). A file system has a handful of series, however many OSTs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

FOLDER = Path(os.environ.get("GCLUSTER_TEXTFILES", "/var/lib/prometheus/node-exporter"))
FILE = "gcluster-lustre.prom"
ASKED = ("lctl", "get_param", "mdc.*.state", "osc.*.state", "llite.*.stats")
LIMIT_S = 20
CONNECTED = frozenset({"FULL", "IDLE"})
"""IDLE: nothing was requested for a while, and the next request connects (since 2.12)."""
_NAME = re.compile(r"^(?P<kind>mdc|osc|llite)\.(?P<system>[^-.]+)-[^=]*=$")
_EVENT = re.compile(r"^\s*- \[ *(?P<at>\d+), *(?P<state>[A-Z_]+) *\]")
_BYTES = re.compile(r"^(?P<what>read|write)_bytes\s+\d+ samples \[bytes\] \d+ \d+ (?P<sum>\d+)")


def page(text: str) -> str:
    """Return the metrics of what `lctl get_param` prints."""
    targets: defaultdict[str, Counter[str]] = defaultdict(Counter)
    evicted: dict[str, int] = {}
    moved: dict[tuple[str, str], int] = {}
    system = ""
    for line in text.splitlines():
        if name := _NAME.match(line):
            system = name["system"]
        elif not system:
            continue
        elif line.startswith("current_state:"):
            state = line.partition(":")[2].strip()
            targets[system]["connected" if state in CONNECTED else "disconnected"] += 1
        elif (event := _EVENT.match(line)) and event["state"] == "EVICTED":
            evicted[system] = max(int(event["at"]), evicted.get(system, 0))
        elif counted := _BYTES.match(line):
            moved[system, counted["what"]] = int(counted["sum"])
    lines = [
        f'gcluster_lustre_targets{{filesystem="{name}",state="{state}"}} {found[state]}'
        for name, found in sorted(targets.items())
        for state in ("connected", "disconnected")
    ]
    lines += [
        f'gcluster_lustre_evicted_time_seconds{{filesystem="{name}"}} {at}'
        for name, at in sorted(evicted.items())
    ]
    lines += [
        f'gcluster_lustre_{what}_bytes_total{{filesystem="{name}"}} {count}'
        for (name, what), count in sorted(moved.items())
    ]
    return "".join(f"{line}\n" for line in lines)


def write(path: Path, text: str) -> None:
    """Replace a file as a whole; node exporter reads names that end with .prom alone."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)


def main() -> int:
    """Write the file; remove it where Lustre's client says nothing."""
    try:
        done = subprocess.run(ASKED, capture_output=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"lctl: {error}", file=sys.stderr)
        (FOLDER / FILE).unlink(missing_ok=True)
        return 1
    write(FOLDER / FILE, page(done.stdout.decode("utf-8", "replace")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
