"""Jobs that others have preempted, counted of what slurmdbd keeps.

slurmctld has no count of them. Whether a preempted job ends or is queued again, it completes to the
accounts as PREEMPTED first (src/slurmctld/job_mgr.c, _job_requeue_op, Slurm 22.05 to 25.11); sacct
shows those that ran again with --duplicates alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

LOOKED_BACK = "now-1hours"
EVERY_S = 60
"""Between two queries of slurmdbd: the page is written more often."""
COMMAND = (
    *("sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2"),
    *("--state=PREEMPTED", f"--starttime={LOOKED_BACK}", "--endtime=now"),
    "--format=JobIDRaw,End,QOS,Account",
)
_COLUMNS = 4
_NAME = "gcluster_slurm_preemptions_total"


def add_preemptions(
    add: Callable[..., None], state: Path, now: float, output_of: Callable[..., str]
) -> None:
    """Add the preemptions of each QOS and account to a page, and a 0 where there was none.

    Args:
        add: adds a metric's value with its labels.
        state: as `preemptions` has it, likewise the others.
        now: Unix time in s.
        output_of: runs a command.
    """
    found = preemptions(state, now, output_of)
    if not found:
        add(_NAME, 0, qos="", account="")
    for owner, count in found.items():
        qos, _, account = owner.partition("\n")
        add(_NAME, count, qos=qos, account=account)


def preemptions(state: Path, now: float, output_of: Callable[..., str]) -> dict[str, int]:
    """Return QOS and account, joined by a line's end -> preemptions since this was first run.

    Args:
        state: file in which the sums are kept, with what of the last hour is in them.
        now: Unix time in s.
        output_of: runs a command and returns what it prints; raises where it fails.
    """
    try:
        kept = json.loads(state.read_text(encoding="utf-8"))
        totals, seen, at = dict(kept["totals"]), set(kept["seen"]), float(kept["at"])
    except (OSError, ValueError, KeyError, TypeError):
        totals, seen, at = {}, set(), 0.0
    if 0 <= now - at < EVERY_S:
        return totals
    found: dict[str, str] = {}
    for line in output_of(*COMMAND).splitlines():
        cells = line.split("|", _COLUMNS - 1)
        if len(cells) == _COLUMNS and cells[0].isdigit():
            job, end, qos, account = cells
            found[f"{job} {end}"] = f"{qos}\n{account}"
    for preempted, owner in found.items():
        if preempted not in seen:
            totals[owner] = int(totals.get(owner, 0)) + 1
    state.parent.mkdir(parents=True, exist_ok=True)
    new = state.with_name(f".{state.name}.new")
    new.write_text(json.dumps({"at": now, "totals": totals, "seen": sorted(found)}))
    new.replace(state)
    return totals
