"""What the scheduler says of its nodes and its queue, asked on the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.ssh import SshSession, Unreachable
from gcluster.lifecycle.status import QueueStatus

if TYPE_CHECKING:
    from gcluster.inventory.hosts import Host

_BETWEEN = "---"
"""The line between the nodes and the jobs; a node's line has columns."""
_ASK = (
    "sinfo --noheader --Node --format='%N|%T|%E' | sort -u"
    f" && echo {_BETWEEN} && squeue --noheader --states=PENDING,RUNNING --format=%T"
)
_NOT_FIT = ("down", "drain", "fail", "inval", "unknown", "power", "reboot", "maint", "perfctrs")


class SchedulerView(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's answer. `problem` is "" when it answered."""

    problem: str = ""
    states: dict[str, str] = {}
    """Node -> state as sinfo says it, lower case: idle, mixed, drained, down*."""
    reasons: dict[str, str] = {}
    """Node -> the reason an administrator or Slurm gave, where there is one."""
    queue: QueueStatus | None = None

    def is_fit(self, node: str) -> bool:
        """Whether jobs can start on the node now or when it is free."""
        state = self.states.get(node, "unknown")
        return not state.endswith("*") and not any(word in state for word in _NOT_FIT)


def ask_controller(session: SshSession, controller: Host) -> SchedulerView:
    """Ask slurmctld for nodes and queue in one SSH exec; never raises for a dead controller."""
    answer = session.run_many([controller], _ASK, timeout_s=20)[controller.name]
    if isinstance(answer, Unreachable):
        return SchedulerView(problem=f"controller {controller.name}: {answer.reason}")
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        said = lines[-1] if lines else f"exit {answer.returncode}"
        return SchedulerView(problem=f"slurmctld on {controller.name} does not answer: {said}")
    return _parse(answer.stdout)


def _parse(text: str) -> SchedulerView:
    lines = text.splitlines()
    end = lines.index(_BETWEEN) if _BETWEEN in lines else len(lines)
    rows = [line.split("|", 2) for line in lines[:end] if line.count("|") >= 2]  # noqa: PLR2004  # three columns
    states = [line.strip() for line in lines[end + 1 :]]
    return SchedulerView(
        states={name: state.lower() for name, state, _ in rows},
        reasons={name: reason for name, _, reason in rows if reason not in {"", "none"}},
        queue=QueueStatus(running=states.count("RUNNING"), pending=states.count("PENDING")),
    )
