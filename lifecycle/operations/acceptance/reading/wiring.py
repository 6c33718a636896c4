"""Compares the wiring plan with the switches that nodes report at their ports."""

from __future__ import annotations

import csv
import fnmatch
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ....cluster.outcome import Exit, failure
from .result import Figure, Reading, reading

COLUMNS = ("host", "device", "switch", "port")
MARK = "cable "


class Cable(msgspec.Struct, frozen=True):
    """The far end of a cable."""

    switch: str
    """Its system name or whole description; with * and ? as in `rdma.leaves`."""
    port: str
    """As the switch names it: a number (InfiniBand), or what it announces by LLDP."""

    def is_at(self, switch: str, port: str) -> bool:
        """Whether a port that was found is this one. "MF0;leaf1:MQM9700/U1" is leaf1."""
        name = switch.partition(";")[2].partition(":")[0]
        named = any(fnmatch.fnmatchcase(one, self.switch) for one in (switch, name) if one)
        return named and port == self.port


def read_plan(path: Path) -> dict[str, dict[str, Cable]]:
    """Return host -> device -> the far end, of a CSV file whose first line names the columns.

    Raises:
        LifecycleError: GC1196, with the line: it can't be read, or has a cable twice.
    """
    found: dict[str, dict[str, Cable]] = {}
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines(), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _refused(f"--wiring {path}: {error}") from error
    if not rows or tuple(word.strip() for word in rows[0]) != COLUMNS:
        raise _refused(f"--wiring {path}: line 1 does not name the columns")
    for number, row in enumerate(rows[1:], 2):
        words = [word.strip() for word in row]
        if not any(words):
            continue
        if len(words) != len(COLUMNS) or not all(words):
            raise _refused(f"--wiring {path}: line {number} has not four words")
        host, device, switch, port = words
        if device in found.setdefault(host, {}):
            raise _refused(f"--wiring {path}: line {number} has {host} {device} again")
        found[host][device] = Cable(switch, port)
    return found


def _refused(summary: str) -> Exception:
    hint = f"a CSV file: {','.join(COLUMNS)}, then a line for each cable"
    return failure("GC1196", summary, hint=hint, exit_code=Exit.USAGE)


def read_wiring(text: str, planned: Mapping[str, Cable]) -> Reading:
    """Compare a node's ports with the plan: a cable elsewhere, or without a link, fails.

    Args:
        text: lines `cable DEVICE|PORT|SWITCH` of the ports that are up.
        planned: device -> where the plan has its cable.
    """
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        if line.startswith(MARK):
            device, _, rest = line.removeprefix(MARK).partition("|")
            port, _, switch = rest.partition("|")
            found[device] = (switch.strip(), port.strip())
    failures, right = [], 0
    for device, cable in planned.items():
        plan = f"the plan has it on {cable.switch} port {cable.port}"
        switch, port = found.get(device, ("", ""))
        if cable.is_at(switch, port):
            right += 1
        elif switch or port:
            failures.append(f"{device} is on {switch or '?'} port {port or '?'}, {plan}")
        else:
            failures.append(f"{device} has no neighbour that answers, {plan}")
    if not planned:
        failures.append("the plan has no cable of this node")
    unplanned = sorted(found.keys() - planned.keys()) if planned else []
    remarks = [f"{', '.join(unplanned)}: not in the plan"] if unplanned else []
    figures = [Figure(metric="cables", value=float(right))] if right else []
    return reading(figures, failures, remarks)
