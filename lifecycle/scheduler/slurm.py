"""Slurm as the scheduler: sinfo and squeue to observe, scontrol to act, run on a controller."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ...inventory.hosts import Host
from ...schemas.derived.hostlist import expand, fold
from ..nodes.ssh import SshResult, SshSession, Unreachable
from ..nodes.ssh.arguments import as_root
from ..status.slurm import answered, last_error_line, nodes_and_jobs_command
from .base import NodeUse, SchedulerSilent

_ON_NODES = "running,suspended,completing,configuring,stopped,signaling,stage_out"
"""States of jobs that hold nodes (squeue(1), Slurm 25.05)."""
_QUERY = nodes_and_jobs_command(f"--states={_ON_NODES} --format='%A|%N'")
_PINNED = "squeue --noheader --format='%A|%T|%n'"
"""Jobs that haven't ended, with the nodes that they request by name."""
_OUT = re.compile(r"drain|down|fail|power(?:ed|ing)_down|unknown|not_responding")
_LIMIT_S = 30


class Slurm:
    """The controller's own commands, run there by SSH; scontrol as root."""

    def __init__(self, session: SshSession, controller: Host) -> None:
        """Set the connection to the controller; nothing is queried yet."""
        self._session = session
        self._controller = controller

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node, in one SSH exec; raises SchedulerSilent."""
        wanted = set(nodes)
        found, lines = answered(self._run(_QUERY))
        if lines is None:
            raise SchedulerSilent("its answer was cut short")
        jobs = _jobs(lines)
        return {
            node.name: NodeUse(
                out=bool(_OUT.search(node.state)),
                jobs=tuple(jobs.get(node.name, ())),
                reason=node.reason,
                silent=node.state.endswith("*"),
                unheard=node.state.startswith("unknown"),
            )
            for node in found
            if node.name in wanted
        }

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Drain the nodes; raises SchedulerSilent."""
        self._update(nodes, "State=DRAIN", f"Reason={reason}")

    def resume(self, nodes: Collection[str]) -> None:
        """Resume the nodes; raises SchedulerSilent."""
        self._update(nodes, "State=RESUME")

    def requeue(self, jobs: Collection[str]) -> None:
        """Requeue the jobs; one that ended meanwhile, or can't be requeued, is left alone."""
        words = ["scontrol", "requeue", ",".join(jobs)]
        self._query(as_root(self._controller, words))

    def pinned(self, nodes: Collection[str]) -> Mapping[str, str]:
        """Return job -> state of those that request one of the nodes; raises SchedulerSilent."""
        wanted = set(nodes)
        rows = (line.split("|") for line in self._run(_PINNED).splitlines())
        pinned = (row for row in rows if len(row) == 3 and row[2])  # noqa: PLR2004  # its columns
        return {job: state for job, state, names in pinned if wanted & set(expand(names))}

    def _update(self, nodes: Collection[str], *settings: str) -> None:
        if nodes:
            words = ["scontrol", "update", f"NodeName={fold(nodes)}", *settings]
            self._run(as_root(self._controller, words))

    def _query(self, command: str) -> SshResult:
        here = self._controller
        answer = self._session.run_many([here], command, timeout_s=_LIMIT_S)[here.name]
        if isinstance(answer, Unreachable):
            raise SchedulerSilent(f"{here.name}: {answer.reason}")
        return answer

    def _run(self, command: str) -> str:
        answer = self._query(command)
        if answer.returncode != 0:
            raise SchedulerSilent(last_error_line(answer))
        return answer.stdout


def _jobs(lines: list[str]) -> dict[str, list[str]]:
    """Return node -> the jobs that hold it."""
    jobs: dict[str, list[str]] = {}
    for line in lines:
        job, _, where = line.partition("|")
        for node in expand(where) if where else ():
            jobs.setdefault(node, []).append(job)
    return jobs
