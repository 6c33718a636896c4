"""Slurm as the scheduler of a rolling change: sinfo and squeue to look, scontrol to act."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from gcluster.lifecycle.rolling.service import NodeUse, ServiceSilent
from gcluster.lifecycle.ssh import Unreachable
from gcluster.schemas.hostlist import expand, fold

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gcluster.inventory.hosts import Host
    from gcluster.lifecycle.ssh import SshResult, SshSession

_BETWEEN = "---"
_ON_NODES = "running,suspended,completing,configuring,stopped,signaling,stage_out"
"""States of jobs that hold nodes (squeue(1), Slurm 25.05)."""
_LOOK = (
    "sinfo --noheader --Node --format='%N|%T|%E' | sort -u"
    f" && echo {_BETWEEN} && squeue --noheader --states={_ON_NODES} --format='%A|%N'"
)
_OUT = re.compile(r"drain|down|fail|power(?:ed|ing)_down|unknown|not_responding")
_LIMIT_S = 30


class SlurmService:
    """The controller's own commands, run there by SSH; scontrol as root."""

    def __init__(self, session: SshSession, controller: Host) -> None:
        """Hold the way to the controller; nothing is asked yet."""
        self._session = session
        self._controller = controller

    def look(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node, in one SSH exec; raises ServiceSilent."""
        wanted = set(nodes)
        rows, jobs = _parse(self._run(_LOOK))
        return {
            name: NodeUse(
                out=bool(_OUT.search(state)),
                jobs=tuple(jobs.get(name, ())),
                reason="" if reason == "none" else reason,
            )
            for name, state, reason in rows
            if name in wanted
        }

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Drain the nodes; raises ServiceSilent."""
        self._update(nodes, "State=DRAIN", f"Reason={reason}")

    def give_back(self, nodes: Collection[str]) -> None:
        """Resume the nodes; raises ServiceSilent."""
        self._update(nodes, "State=RESUME")

    def requeue(self, jobs: Collection[str]) -> None:
        """Requeue the jobs; one that ended meanwhile, or can't be requeued, is left alone."""
        words = ["scontrol", "requeue", ",".join(jobs)]
        self._ask(self._as_root(words))

    def _update(self, nodes: Collection[str], *settings: str) -> None:
        if nodes:
            self._run(self._as_root(["scontrol", "update", f"NodeName={fold(nodes)}", *settings]))

    def _as_root(self, words: list[str]) -> str:
        is_root = self._controller.ssh.user == "root"
        return shlex.join(words if is_root else ["sudo", "-n", *words])

    def _ask(self, command: str) -> SshResult:
        here = self._controller
        answer = self._session.run_many([here], command, timeout_s=_LIMIT_S)[here.name]
        if isinstance(answer, Unreachable):
            raise ServiceSilent(f"{here.name}: {answer.reason}")
        return answer

    def _run(self, command: str) -> str:
        answer = self._ask(command)
        if answer.returncode != 0:
            said = answer.stderr.strip().splitlines()
            raise ServiceSilent(said[-1] if said else f"exit {answer.returncode}")
        return answer.stdout


def _parse(text: str) -> tuple[list[tuple[str, str, str]], dict[str, list[str]]]:
    """Return (node, state, reason) rows and node -> jobs."""
    lines = text.splitlines()
    if _BETWEEN not in lines:
        raise ServiceSilent("its answer was cut short")
    end = lines.index(_BETWEEN)
    rows = []
    for line in lines[:end]:
        name, state, reason = line.split("|", 2)
        rows.append((name, state.lower(), reason))
    jobs: dict[str, list[str]] = {}
    for line in lines[end + 1 :]:
        job, _, where = line.partition("|")
        for node in expand(where) if where else ():
            jobs.setdefault(node, []).append(job)
    return rows, jobs
