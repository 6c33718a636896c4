"""How the jobs of accounts ended, by GPU hours, as slurmdbd has it."""

from __future__ import annotations

import re
from collections import defaultdict

import msgspec

from ....inventory.hosts import Host
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import AS_ROOT

_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_COLUMNS = 4


class Ended(msgspec.Struct, frozen=True):
    """GPU hours of an account's jobs that ended."""

    completed: float
    others: float
    """Failed, cancelled, out of time, or taken down with a node."""

    @property
    def goodput(self) -> float | None:
        """Share of those of jobs which completed; None: no job with GPUs ended."""
        total = self.completed + self.others
        return self.completed / total if total else None


def jobs_ended(
    session: SshSession, controller: Host, since: float, until: float
) -> dict[str, Ended] | None:
    """Return account -> GPU hours of its jobs, from slurmdbd; None where that doesn't answer.

    Jobs that still run are left out; of the others the time between `since` and `until` counts, in
    s since 1970.
    """
    command = (
        f"root={AS_ROOT}; $root sacct --allusers --allocations --noheader --parsable2 --truncate "
        f"--starttime=$(date -d @{since:.0f} +%FT%T) --endtime=$(date -d @{until:.0f} +%FT%T) "
        "--format=State,ElapsedRaw,AllocTRES,Account"
    )
    answer = session.run(controller, command, timeout_s=120)
    if isinstance(answer, Unreachable) or answer.returncode:
        return None
    return ended_jobs(answer.stdout)


def ended_jobs(text: str) -> dict[str, Ended]:
    """Return account -> GPU hours of its jobs, of the lines of sacct."""
    hours: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for line in text.splitlines():
        cells = line.split("|", _COLUMNS - 1)
        if len(cells) != _COLUMNS or not cells[1].isdigit():
            continue
        state, elapsed, tres, account = cells
        gpus = _GPUS.search(tres)
        if gpus is None or state in {"RUNNING", "PENDING", "SUSPENDED", "REQUEUED"}:
            continue
        hours[account][state != "COMPLETED"] += int(gpus[1]) * int(elapsed) / 3600
    return {account: Ended(completed, others) for account, (completed, others) in hours.items()}
