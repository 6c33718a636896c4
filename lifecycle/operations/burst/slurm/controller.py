"""Slurm's controller for the burst agent: polled over SSH, updated by scontrol as root."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from .....inventory.compile.slurm.elastic import SPOOL
from .....inventory.hosts import Host
from .....schemas.derived.hostlist import fold
from ....nodes.ssh import SshSession, Unreachable
from ....nodes.ssh.arguments import as_root
from ....status.slurm import last_error_line
from ..agent.scheduler import MARK, SchedulerRefused, SchedulerSilent, Seen
from .reading import CutShortError, poll_lines, read, waiting

_LIMIT_S = 60
_REQUEST = re.compile(r"[0-9A-Za-z-]+\.request")
_LONGEST = 400
"""Characters of a reason; Slurm's own protocol has room for more, a person's screen has not."""

_AT_ONCE = 200
"""Nodes or jobs that one exec is about: each takes some hundredths of a second, of `_LIMIT_S`."""
_PATIENT = """\
for try in 1 2 3; do
  said=$({command} 2>&1) && exit 0
  case "$said" in *"temporarily unavailable"*) sleep 1 ;; *) break ;; esac
done
echo "$said" >&2
exit 1
"""
"""Slurm refuses a job's move while it tries to schedule it (seen with 24.11.5); not for long."""


class SlurmController:
    """The scheduler that the agent serves; a call is one SSH exec, or a few for hundreds.

    Every call is safe to repeat, and may raise SchedulerSilent or SchedulerRefused.
    """

    def __init__(
        self, session: SshSession, controllers: Sequence[Host], gpu_models: Mapping[str, str]
    ) -> None:
        """Set the connection; nothing is queried yet.

        Args:
            session: pins the hosts' keys.
            controllers: where slurmctld runs or may take over; each can be used for the active one.
            gpu_models: GPU type as Slurm has it -> as the spec has it.
        """
        self._session = session
        self._controllers = tuple(controllers)
        self._gpu_models = gpu_models

    def observe(self) -> Seen:
        """Return requests, nodes and jobs; raises SchedulerSilent."""
        mark = secrets.token_hex(8)
        try:
            return read(self._run(poll_lines(SPOOL, mark)), mark, self._gpu_models)
        except CutShortError as error:
            raise SchedulerSilent(f"{self._controllers[0].name}: {error}") from None

    def wait(self, seconds: float) -> None:
        """Return when a request's file appears, after so many seconds at the latest."""
        self._run(waiting(SPOOL, seconds), limit_s=_LIMIT_S + seconds)

    def remove_requests(self, requests: Collection[str]) -> None:
        """Remove the requests' files."""
        files = [f"{SPOOL}/{name}" for name in requests if _REQUEST.fullmatch(name)]
        if files:
            self._run(shlex.join(["rm", "-f", *files]))

    def place(self, addresses: Mapping[str, str]) -> None:
        """Set the nodes' addresses."""
        self._act(
            ["update", f"NodeName={name}", f"NodeAddr={address}", f"NodeHostName={name}"]
            for name, address in sorted(addresses.items())
        )

    def give_up(self, nodes: Collection[str], reason: str) -> None:
        """Put the nodes down: Slurm requeues their jobs."""
        self._act([["update", f"NodeName={fold(nodes)}", "State=DOWN", f"Reason={_line(reason)}"]])

    def forget(self, nodes: Collection[str]) -> None:
        """Make the nodes powered down and eligible again, whatever their current transition.

        A node that is still powering up is powered down first. Seen with Slurm 24.11.5: DOWN while
        POWERING_UP keeps that flag; POWER_DOWN_FORCE and RESUME make it IDLE and POWERING_DOWN, so
        that it may be requested after SuspendTimeout; RESUME alone clears ResumeTimeout's `down~`,
        and ends POWERING_DOWN at once.
        """
        self._run_each(map(_forget, sorted(nodes)))

    def end_power_down(self, nodes: Collection[str]) -> None:
        """End the nodes' POWERING_DOWN, which Slurm would keep up for all of SuspendTimeout."""
        self._run_each(map(_not_powering_down, sorted(nodes)))

    def release(self, nodes: Collection[str]) -> None:
        """Power idle nodes down; one that has got a job since goes after it."""
        reason = f"Reason={MARK}idle for longer than suspend_after"
        self._act([["update", f"NodeName={fold(nodes)}", "State=POWER_DOWN", reason]])

    def move(self, job: str, partition: str, reason: str) -> None:
        """Move a waiting job; Slurm refuses one that has started: SchedulerRefused."""
        words = [f"JobId={job}", f"Partition={partition}", f"AdminComment={MARK}{_line(reason)}"]
        self._run(_PATIENT.format(command=shlex.join(["scontrol", "update", *words])))

    def annotate(self, reasons: Mapping[str, str]) -> None:
        """Put the sentences into the jobs' AdminComment; jobs that have ended need none."""
        self._act(
            (
                ["update", f"JobId={job}", f"AdminComment={MARK}{_line(reason)}"]
                for job, reason in reasons.items()
            ),
            strict=False,
        )

    def _act(self, commands: Iterable[list[str]], *, strict: bool = True) -> None:
        """Run scontrol once for each; `strict`: one that fails is a failure."""
        end = " || failed=1" if strict else " 2>/dev/null || :"
        self._run_each([shlex.join(["scontrol", *words]) + end] for words in commands)

    def _run_each(self, parts: Iterable[list[str]]) -> None:
        """Run lines that are each about one node or job; all of them, also where one fails."""
        scripts = list(parts)
        refused: SchedulerRefused | None = None
        for first in range(0, len(scripts), _AT_ONCE):
            lines = (line for lines in scripts[first : first + _AT_ONCE] for line in lines)
            try:
                self._run("\n".join(["failed=0", *lines, "exit $failed"]))
            except SchedulerRefused as error:
                refused = error
        if refused is not None:
            raise refused

    def _run(self, script: str, *, limit_s: float = _LIMIT_S) -> str:
        """Run shell lines as root, from stdin: a command line is too short for a long queue.

        The first reachable controller is used, and from then on it is tried first.
        """
        silent = []
        for here in self._controllers:
            line = as_root(here, ["sh", "-s"])
            answer = self._session.run(here, line, stdin=script, timeout_s=limit_s)
            if isinstance(answer, Unreachable):
                silent.append(f"{here.name}: {answer.reason}")
                continue
            others = (host for host in self._controllers if host is not here)
            self._controllers = (here, *others)
            if answer.returncode != 0:
                raise SchedulerRefused(f"{here.name}: {last_error_line(answer)}")
            return answer.stdout
        raise SchedulerSilent("; ".join(silent))


def _has(node: str, flag: str) -> str:
    """Return the shell condition that a node's state has a flag."""
    show = shlex.join(["scontrol", "--oneliner", "show", "node", node])
    return f"{show} | grep -q ' State=[^ ]*+{flag}'"


def _forget(name: str) -> list[str]:
    """Return the shell lines that make a node a powered down one; see `SlurmController.forget`."""
    node = shlex.quote(f"NodeName={name}")
    return [
        f"if {_has(name, 'POWERING_UP')}; then",
        f"  scontrol update {node} State=POWER_DOWN_FORCE",
        "fi",
        f"scontrol update {node} State=RESUME || failed=1",
        *_not_powering_down(name),
    ]


def _not_powering_down(node: str) -> list[str]:
    """Return the shell lines that make a node that powers down a powered down one.

    RESUME would also end a drain, which an administrator has set.
    """
    return [
        f"if {_has(node, 'POWERING_DOWN')} && ! {_has(node, 'DRAIN')}; then",
        f"  scontrol update {shlex.quote(f'NodeName={node}')} State=RESUME || :",
        "fi",
    ]


def _line(text: str) -> str:
    """Return a reason as one line without the characters at which Slurm's output is split."""
    return " ".join(text.replace('"', "'").split())[:_LONGEST]
