"""Facts that machines report when something is wrong, read from their own tools (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

_ENCODED = re.compile(r"^ENCODE_TIME:.*\((\d+)\)$", re.MULTILINE)
_DECODED = re.compile(r"^DECODE_TIME:.*\((\d+)\)$", re.MULTILINE)
_STATUS = re.compile(r"^STATUS:\s+(.*?)(?: \(\d+\))?$|^unmunge: Error: (.*)$", re.MULTILINE)
_DISK = re.compile(r"^\s*(\d+)% (/\S*)$", re.MULTILINE)
_UNIT = re.compile(r"^([a-z]+) ([a-z]+)$", re.MULTILINE)
_OFFSET = re.compile(r"^System time\s*: ([0-9.]+) seconds (slow|fast) of NTP time$", re.MULTILINE)


class ControllerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A controller that can be logged in to."""

    host: str
    units: dict[str, str] = {}
    """slurmctld, munge -> active, failed, inactive ... from systemctl."""
    disks: dict[str, int] = {}
    """Mount point -> percent in use, of those that Slurm writes to."""
    dbd: str = ""
    """The last line of sacctmgr when slurmdbd does not respond; "" when it does, or is not used."""


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A node that the scheduler counts as unfit."""

    host: str
    state: str
    """From sinfo."""
    reason: str = ""
    """From sinfo; "" for none."""
    unreachable: str = ""
    """Why SSH did not reach it; "" when it did."""
    requested: bool = False
    """It was queried, and what follows is its response."""
    units: dict[str, str] = {}
    disks: dict[str, int] = {}
    credential: str = ""
    """unmunge's result for a credential of the controller: "Success", "Invalid ..."."""
    ahead_s: float | None = None
    """How far its clock is before the controller's; None: not known."""
    ntp_offset_s: float | None = None
    """How far it is before NTP time, by chronyc; None: not known."""


def controller_facts(host: str, sections: Mapping[str, str]) -> ControllerFacts:
    """Read the sections `units`, `disks` and `dbd` of a controller's report."""
    lines = [line for line in sections.get("dbd", "").strip().splitlines() if line]
    words = [line for line in lines if not line.startswith("exit ")]
    return ControllerFacts(
        host=host,
        units=units_of(sections.get("units", "")),
        disks=disks_of(sections.get("disks", "")),
        # Warnings without an exit status are no failure.
        dbd=(words or lines)[-1] if lines and lines[-1].startswith("exit ") else "",
    )


def node_facts(host: str, state: str, reason: str, text: str) -> NodeFacts:
    """Read what a node answered: unmunge, systemctl, df and chronyc, one after the other."""
    status = _STATUS.search(text)
    encoded, decoded = _ENCODED.search(text), _DECODED.search(text)
    return NodeFacts(
        host=host,
        state=state,
        reason=reason,
        requested=True,
        units=units_of(text),
        disks=disks_of(text),
        credential=(status[1] or status[2]) if status else "",
        ahead_s=float(decoded[1]) - float(encoded[1]) if encoded and decoded else None,
        ntp_offset_s=ntp_offset(text),
    )


def units_of(text: str) -> dict[str, str]:
    """Read lines "slurmd active"."""
    return {m[1]: m[2] for m in _UNIT.finditer(text)}


def disks_of(text: str) -> dict[str, int]:
    """Read df's lines " 97% /var"."""
    return {m[2]: int(m[1]) for m in _DISK.finditer(text)}


def ntp_offset(text: str) -> float | None:
    """Read `chronyc tracking`: seconds before NTP time, below 0 behind it; None: it isn't there."""
    found = _OFFSET.search(text)
    if found is None:
        return None
    return float(found[1]) * (1 if found[2] == "fast" else -1)
