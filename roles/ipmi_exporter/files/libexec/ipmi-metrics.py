#!/usr/bin/python3
"""Write the power that this node's BMC measures, for node exporter.

It is read by freeipmi's ipmi-dcmi through the kernel's driver (/dev/ipmi0): no network, no
password. Names are those of ipmi_exporter (prometheus-community, collector_dcmi.go), so published
dashboards and rules find them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("GCLUSTER_TEXTFILES", "/var/lib/prometheus/node-exporter"))
FILE = "gcluster-ipmi.prom"
ASKED = ("ipmi-dcmi", "--driver-type=OPENIPMI", "--get-system-power-statistics")
"""With the kernel's driver alone: freeipmi's own would use the BMC's ports at the same time."""
LIMIT_S = 30
_POWER = re.compile(r"^Current Power *: *(\d+) watts", re.IGNORECASE | re.MULTILINE)
_MEASURED = re.compile(r"^Power Measurement *: *Active", re.MULTILINE)


def page(text: str) -> str:
    """Return the metrics of what ipmi-dcmi prints; of a BMC that measures no power there is none.

    Such a BMC prints "0 Watts" and "Not Available".
    """
    power = _POWER.search(text)
    if power is None:
        return 'ipmi_up{collector="dcmi"} 0\n'
    lines = ['ipmi_up{collector="dcmi"} 1']
    if _MEASURED.search(text):
        lines.append(f"ipmi_dcmi_power_consumption_watts {power[1]}")
    return "".join(f"{line}\n" for line in lines)


def write(path: Path, text: str) -> None:
    """Replace a file as a whole; node exporter reads names that end with .prom alone."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)


def main() -> int:
    """Write the file; a BMC that doesn't answer is a figure too."""
    said = ""
    try:
        done = subprocess.run(ASKED, capture_output=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"ipmi-dcmi: {error}", file=sys.stderr)
    else:
        sys.stderr.write(done.stderr.decode("utf-8", "replace"))
        said = done.stdout.decode("utf-8", "replace")
    write(FOLDER / FILE, page(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
