"""No scheduler: mpirun on the first node starts the AllReduce over SSH, as people there do.

Nodes accept no login from other nodes, and that stays so: for the time of a run each has an sshd
of its own on another port, with keys made for this run alone (mpirun.sh).
"""

from __future__ import annotations

import math
import secrets
import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from ....inventory.accounting.records import SMOKE_UID
from ....inventory.hosts import Host
from ....stacks.io.ssh import ensure_client_key, public_text
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import AS_ROOT
from ...scheduler.processes import Processes
from ...status.slurm import last_error_line
from ..launch import Launch
from .launcher import Ended

_LIMIT_S = 60
_FOLDER = "/tmp/gcluster-smoke-mpirun"  # noqa: S108  # root makes it, and fails where one is there
_READY = Path(__file__).parent / "mpirun.sh"
_FIRST_PORT, _PORTS = 20_000, 10_000
"""The sshd of a run listens on one of these ports, below those that Linux gives to clients."""

END_EARLIER = f"""\
pkill -f -- '--hostfile {_FOLDER}/[h]osts'
pkill -u {SMOKE_UID} -x 'prted|orted'
pkill -f -- '[/]sshd_config_gcluster_smoke'
rm -rf {_FOLDER}"""
"""Ends on a node what this run or an earlier one, which was killed, left there."""


class SshLauncher:
    """The nodes, each reached by SSH."""

    def __init__(self, session: SshSession, compute: Collection[Host]) -> None:
        """Set the connections; nothing is queried yet."""
        self._session = session
        self._hosts = {host.name: host for host in compute}

    def idle(self, compute: tuple[Host, ...]) -> tuple[tuple[Host, ...], tuple[str, ...]]:
        """Return the hosts without users' processes, and the names of the others.

        Processes of earlier runs are ended first: the caller holds the cluster's lock. A host that
        is unreachable, or out of service, isn't idle.
        """
        self._end(compute)
        uses = Processes(self._session, compute).every_node()
        busy = {name for name, use in uses.items() if use.jobs or use.out or use.silent}
        idle = tuple(host for host in compute if host.name in uses.keys() - busy)
        return idle, tuple(host.name for host in compute if host not in idle)

    def run(self, launch: Launch, take: Callable[[str], None], limit_s: float) -> Ended:
        """Run one AllReduce; see `Launcher`."""
        hosts = [self._hosts[name] for name in launch.nodes]
        try:
            if problem := self._make_ready(hosts, launch, limit_s):
                return Ended(status=1, problem=problem, started=False)
            answer = self._session.stream(hosts[0], command(launch), take, timeout_s=limit_s)
        finally:
            self._end(hosts)
        if isinstance(answer, Unreachable):
            return Ended(status=1, problem=f"{hosts[0].name}: {answer.reason}")
        return Ended(status=answer.returncode)

    def reaches_nics(self, launch: Launch) -> bool:
        """Return True: ranks are processes of their nodes."""
        del launch
        return True

    def _make_ready(self, hosts: Collection[Host], launch: Launch, limit_s: float) -> str:
        """Start an sshd of this run on each host; return why one can't be."""
        settings = _keys() | {
            "folder": _FOLDER,
            "hosts": "".join(f"{host.address} slots={max(1, launch.gpus)}\n" for host in hosts),
            "port": str(_FIRST_PORT + secrets.randbelow(_PORTS)),
            "uid": str(SMOKE_UID),
            "limit_s": str(math.ceil(limit_s + _LIMIT_S)),
        }
        given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
        # In front of the root's own shell, so that the login user is known.
        line = f'user=$(id -un) && {AS_ROOT} env user="$user" sh -s'
        text = given + _READY.read_text(encoding="utf-8")
        answers = self._session.feed_many(hosts, line, text, timeout_s=_LIMIT_S)
        for name, answer in answers.items():
            if isinstance(answer, Unreachable):
                return f"{name}: {answer.reason}"
            if answer.returncode != 0:
                return f"{name}: {last_error_line(answer)}"
        return ""

    def _end(self, hosts: Collection[Host]) -> None:
        line = f"{AS_ROOT} sh -c {shlex.quote(END_EARLIER)}"
        self._session.run_many(hosts, line, timeout_s=_LIMIT_S)


def _keys() -> dict[str, str]:
    """Return the keys of one run: of mpirun's client, and one that all its servers show."""
    with TemporaryDirectory() as folder:
        client, server = Path(folder) / "client", Path(folder) / "server"
        for part in (client, server):
            part.mkdir(mode=0o700)
        private, host_key = ensure_client_key(client), ensure_client_key(server)
        return {
            "key": private.read_text(encoding="utf-8"),
            "authorized": public_text(private) + "\n",
            "host_key": host_key.read_text(encoding="utf-8"),
            "known": f"allreduce {public_text(host_key)}\n",
        }


def command(launch: Launch) -> str:
    """Return the line that runs it on the first node; stderr joins stdout in one log.

    mpirun and the ranks are a plain user's, as under Slurm. EL keeps Open MPI apart, behind an
    environment module.
    """
    variables = launch.variables()
    mpirun = [
        *("--hostfile", f"{_FOLDER}/hosts", "-np", str(launch.ranks)),
        *("--map-by", f"ppr:{max(1, launch.gpus)}:node", "--bind-to", "none"),
        *("--mca", "plm_rsh_agent", f"{_FOLDER}/agent"),
        *(word for name in variables for word in ("-x", name)),
        *launch.program(),
    ]
    inner = (
        "prefix=$(ls -d /usr/lib64/openmpi 2>/dev/null); "
        "export PATH=$PATH:/usr/sbin${prefix:+:$prefix/bin}; "
        f'exec mpirun ${{prefix:+--prefix "$prefix"}} {shlex.join(mpirun)}'
    )
    user = ("setpriv", f"--reuid={SMOKE_UID}", f"--regid={SMOKE_UID}", "--clear-groups", "env")
    given = ("HOME=/", "SHELL=/bin/sh", *(f"{name}={value}" for name, value in variables.items()))
    return f"cd / && {AS_ROOT} {shlex.join([*user, *given, 'sh', '-c', inner])} 2>&1"
