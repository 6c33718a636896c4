"""Nodes without a scheduler: what holds a node are the processes that people started there.

Nothing keeps a program from starting. So a drained node has a notice that each login shows
(pam_motd(8)), which the nodes' health check writes too (scheduler/notice.py of role node_health).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from ...inventory.hosts import Host
from ..nodes.ssh import Answer, SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT
from ..status.slurm import last_error_line
from .base import NodeUse, SchedulerSilent

NOTICE = "/etc/motd.d/gcluster"
HEAD = "This node is out of service: "
"""How the notice begins; the reason follows, on one line."""
_LIMIT_S = 30

# fmt: off
_SESSIONS = frozenset({
    "(sd-pam)", "awk", "bash", "csh", "dash", "dbus-broker", "dbus-daemon", "fish", "gawk",
    "gpg-agent", "login", "mawk", "ps", "screen", "sftp-server", "sh", "ssh-agent", "sshd",
    "sshd-session", "su", "sudo", "systemd", "tcsh", "tmux", "zsh",
})
# fmt: on
"""Programs of a login that does nothing; what is started from it counts by itself."""

# User ids of people: login.defs' UID_MIN and above, except systemd's dynamic users (61184 to 65519,
# systemd's UIDS-GIDS) and the user `nobody` (65534). GPU processes of all users count: what
# nvidia-smi lists, and the folders of amdkfd, which have the process ids as names.
LOOK = f"""\
[ ! -r {NOTICE} ] || {{ printf 'notice '; head -n 1 {NOTICE}; }}
gpu=$({{ timeout 10 nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null
  ls /sys/class/kfd/kfd/proc 2>/dev/null; }} | tr -cs '0-9' ' ')
ps -eo uid=,pid=,user:32=,comm= | awk -v gpu=" $gpu " '
  {{ on_gpu = index(gpu, " " $2 " ") }}
  on_gpu || ($1 >= 1000 && ($1 < 61184 || $1 > 65535)) {{ print on_gpu ? "gpu" : "process", $0 }}'
echo end"""


class Processes:
    """The nodes themselves, each queried over SSH."""

    def __init__(
        self, session: SshSession, hosts: Collection[Host], *, must_answer: bool = False
    ) -> None:
        """Set the connections; nothing is queried yet.

        Args:
            session: reaches the hosts.
            hosts: those that may be queried.
            must_answer: whether an unreachable one is an error: programs may run there.
        """
        self._must_answer = must_answer
        self._session = session
        self._hosts = {host.name: host for host in hosts if host.connection == "ssh"}

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node; an unreachable one is silent, or raises SchedulerSilent."""
        answers = self._run(nodes, LOOK)
        if self._must_answer:
            _refuse_silent(answers)
        return {
            name: NodeUse(out=False, silent=True)
            if isinstance(answer, Unreachable) or answer.returncode != 0
            else read_use(answer.stdout)
            for name, answer in answers.items()
        }

    def every_node(self) -> Mapping[str, NodeUse]:
        """Return the use of all hosts that were given; as `nodes`."""
        return self.nodes(self._hosts)

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Have each login show the reason; raises SchedulerSilent."""
        text = shlex.quote(f"{HEAD}{' '.join(reason.split())}")
        self._change(nodes, f"mkdir -p /etc/motd.d && printf '%s\\n' {text} >{NOTICE}")

    def resume(self, nodes: Collection[str]) -> None:
        """Remove the notices; raises SchedulerSilent."""
        self._change(nodes, f"rm -f {NOTICE}")

    def requeue(self, jobs: Collection[str]) -> None:
        """Leave the processes alone: nothing would start them again."""

    def pinned(self, nodes: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002  # the interface
        """Return none: nothing waits in a line."""
        return {}

    def _change(self, nodes: Collection[str], command: str) -> None:
        _refuse_silent(self._run(nodes, command))

    def _run(self, nodes: Collection[str], command: str) -> Mapping[str, Answer]:
        hosts = [self._hosts[name] for name in nodes if name in self._hosts]
        line = f"{AS_ROOT} sh -c {shlex.quote(command)}"
        return self._session.run_many(hosts, line, timeout_s=_LIMIT_S)


def _refuse_silent(answers: Mapping[str, Answer]) -> None:
    for name, answer in answers.items():
        if isinstance(answer, Unreachable):
            raise SchedulerSilent(f"{name}: {answer.reason}")
        if answer.returncode != 0:
            raise SchedulerSilent(f"{name}: {last_error_line(answer)}")


def read_use(text: str) -> NodeUse:
    """Parse what `LOOK` printed."""
    lines = text.splitlines()
    if lines[-1:] != ["end"]:
        return NodeUse(out=False, silent=True)
    reason = next((line.removeprefix("notice ") for line in lines if line[:7] == "notice "), "")
    jobs = []
    for line in lines:
        kind, *rest = line.split(None, 4)
        if kind not in {"gpu", "process"} or len(rest) != 4:  # noqa: PLR2004  # its columns
            continue
        _, process_id, user, program = rest
        if kind == "gpu" or program.partition(":")[0] not in _SESSIONS:
            jobs.append(f"{user}:{program.replace(' ', '_')}[{process_id}]")
    return NodeUse(out=bool(reason), jobs=tuple(jobs), reason=reason.removeprefix(HEAD))
