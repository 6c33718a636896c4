"""Results of checks, where a finding drains the node and a note does not; and the report.

The report of one run is a line for Slurm and users, and JSON for status and monitoring.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .checks import CheckRun
    from .expected import Expected
    from .state import NodeState


@dataclass(frozen=True)
class Finding:
    """One problem of the node."""

    code: str
    """Stable key of it: gpu-count, xid, mount-hung ..."""
    message: str
    """As text, with the part and the figure."""
    drains: bool = True
    """False: worth a note; jobs may go on."""


class CheckIncomplete(Exception):  # noqa: N818  # no error of the program: the answer is missing
    """Something that must be checked could not be: counts as a failure (fail closed)."""


def note(code: str, message: str) -> Finding:
    """Return a finding that keeps no job away."""
    return Finding(code=code, message=message, drains=False)


def reason_of(findings: Sequence[Finding]) -> str:
    """Return one line with all that drains, "" when nothing does."""
    return "; ".join(f"{f.code}: {f.message}" for f in findings if f.drains)


def report_of(
    expected: Expected, found: CheckRun, findings: Sequence[Finding], state: NodeState
) -> dict[str, Any]:
    """Return the report as a JSON object."""
    reason = reason_of(findings)
    return {
        "node": expected.node,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "verdict": "unfit" if reason else "fit",
        "simulated": expected.simulated,
        "reason": reason,
        "state": {"name": state.state, "reason": state.reason},
        "findings": [asdict(finding) for finding in findings],
        "checks": {result.check: result.seconds for result in found.results},
    }


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Write the report, readable by all; it is no secret. A full /run is reported elsewhere."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(report, indent=1) + "\n")
        new.chmod(0o644)
        new.replace(path)
    except OSError:
        return
