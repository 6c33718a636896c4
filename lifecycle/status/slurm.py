"""What the scheduler says of its nodes and its queue, asked on the controller."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ...inventory.hosts import Host
from ..ssh import SshResult, SshSession, Unreachable
from .conditions import QueueStatus

_BETWEEN = "---"
"""The line between the nodes and the jobs; a node's line has columns."""


def asking(squeue: str) -> str:
    """Return the shell line that prints nodes and then jobs, these by `squeue` with options."""
    nodes = "sinfo --noheader --Node --format='%N|%T|%E' | sort -u"
    return f"{nodes} && echo {_BETWEEN} && squeue --noheader {squeue}"


_ASK = asking("--states=PENDING,RUNNING --format=%T")
_NOT_FIT = (
    *("down", "drain", "fail", "inval", "unknown", "power", "reboot", "maint", "perfctrs"),
    *("cordoned", "not ready"),
)
"""Words in the states of sinfo, and of nodes of Kubernetes."""


def is_unfit(state: str) -> bool:
    """Say whether no job can start on a node in this state, in lower case."""
    return state.endswith("*") or any(word in state for word in _NOT_FIT)


class NodeLine(NamedTuple):
    """A node as sinfo prints it."""

    name: str
    state: str
    """Lower case: idle, mixed, drained, down*."""
    reason: str
    """Of an administrator or Slurm; "" where there is none."""


def answered(text: str) -> tuple[list[NodeLine], list[str] | None]:
    """Return the nodes, and the lines of the jobs; None where the answer was cut short."""
    lines = text.splitlines()
    whole = _BETWEEN in lines
    end = lines.index(_BETWEEN) if whole else len(lines)
    rows = [line.split("|", 2) for line in lines[:end] if line.count("|") >= 2]  # noqa: PLR2004  # three columns
    nodes = [
        NodeLine(name, state.lower(), "" if reason == "none" else reason)
        for name, state, reason in rows
    ]
    return nodes, lines[end + 1 :] if whole else None


def last_words(answer: SshResult) -> str:
    """Return the last line that a failed command left on stderr, else its exit status."""
    lines = answer.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit {answer.returncode}"


class SchedulerView(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's answer. `problem` is "" when it answered."""

    problem: str = ""
    states: dict[str, str] = {}
    """Node -> state as sinfo says it, lower case: idle, mixed, drained, down*; of Kubernetes ready,
    cordoned, not ready."""
    reasons: dict[str, str] = {}
    """Node -> the reason an administrator or Slurm gave, where there is one."""
    queue: QueueStatus | None = None

    def is_fit(self, node: str) -> bool:
        """Whether jobs can start on the node now or when it is free."""
        return not is_unfit(self.states.get(node, "unknown"))


def ask_controller(session: SshSession, controller: Host) -> SchedulerView:
    """Ask slurmctld for nodes and queue in one SSH exec; never raises for a dead controller."""
    answer = session.run_many([controller], _ASK, timeout_s=20)[controller.name]
    if isinstance(answer, Unreachable):
        return SchedulerView(problem=f"controller {controller.name}: {answer.reason}")
    if answer.returncode != 0:
        said = last_words(answer)
        return SchedulerView(problem=f"slurmctld on {controller.name} does not answer: {said}")
    return _parse(answer.stdout)


def _parse(text: str) -> SchedulerView:
    nodes, jobs = answered(text)
    states = [line.strip() for line in jobs or ()]
    return SchedulerView(
        states={node.name: node.state for node in nodes},
        reasons={node.name: node.reason for node in nodes if node.reason},
        queue=QueueStatus(running=states.count("RUNNING"), pending=states.count("PENDING")),
    )
