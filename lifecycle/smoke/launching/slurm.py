"""Slurm as what starts the AllReduce: srun on the controller, in a partition, on named nodes."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable

from ....inventory.accounting.records import SMOKE_UID, SMOKE_USER
from ....inventory.hosts import Host
from ....schemas.derived.hostlist import fold
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import AS_ROOT
from ...status.slurm import SchedulerView, query_controller
from ..launch import Launch
from .launcher import Ended

LONGEST_MINUTES = 15
"""Slurm ends a job after this or its time limit, in case gcluster is killed and can't cancel it."""
_LIMIT_S = 30
_ATTEMPTS, RETRY_S = 5, 2.0
"""How often a log without new lines is polled, and the seconds between two polls."""
END_EARLIER = (
    f"root={AS_ROOT}; $root rm -rf /tmp/gcluster-smoke-*; "
    f"ids=$(squeue --user=\"{SMOKE_UID},$(id -u)\" --noheader --format='%i %j' | "
    r"sed -n 's/^ *\([0-9]*\) gcluster-smoke-.*/\1/p'); "
    '[ -z "$ids" ] || '
    '{ $root pkill -f -- "[-]-job-name=gcluster-smoke-"; $root scancel $ids; sleep 2; }'
)
"""Ends every AllReduce of the gate in Slurm, its srun first; of this login too, who once ran it."""
FREE = frozenset({"idle", "completing", "planned"})
"""States (man sinfo) of nodes without a job, or whose job has just ended."""


class SlurmLauncher:
    """The controller's own commands, run there by SSH."""

    def __init__(self, session: SshSession, controller: Host) -> None:
        """Set the connection to the controller; nothing is queried yet."""
        self._session = session
        self._controller = controller

    def idle(self, compute: tuple[Host, ...]) -> tuple[tuple[Host, ...], tuple[str, ...]]:
        """Return the hosts that are idle, and the names of the others; see `Launcher`.

        AllReduces of earlier runs are ended first: the caller holds the cluster's lock, so those
        runs have ended, or a killed controller still lists an ended one.
        """
        self._session.run(self._controller, END_EARLIER, timeout_s=_LIMIT_S)
        return choose_idle(query_controller(self._session, self._controller), compute)

    def run(self, launch: Launch, take: Callable[[str], None], limit_s: float) -> Ended:
        """Run one AllReduce as a job step of its own; see `Launcher`.

        A connection that breaks doesn't end it: reading continues after the last line.
        """
        ended, state, lines = False, "", _Lines(take)
        until, attempts = time.monotonic() + limit_s, 0
        try:
            while not ended:
                known, remaining_s = lines.count, until - time.monotonic()
                line = followed(launch, limit_s, known + 1)
                answer = self._session.stream(
                    self._controller, line, lines.add, timeout_s=max(0.0, remaining_s)
                )
                ended = not isinstance(answer, Unreachable)
                attempts = attempts + 1 if lines.count == known else 1
                if not ended and (attempts >= _ATTEMPTS or time.monotonic() >= until):
                    break
                if not ended:
                    time.sleep(RETRY_S)
        finally:
            lines.end()
            if ended:
                self._session.run(self._controller, f"rm -rf {_folder(launch)}", timeout_s=20)
            else:
                state = self._cancel(launch)
        if not isinstance(answer, Unreachable):
            return Ended(status=answer.returncode)
        word, _, why = state.partition(" ")
        if word == "PENDING":
            return Ended(status=1, problem=f"the job did not start ({why})", started=False)
        message = f"; job {launch.job} was {word} in Slurm" if word else ""
        return Ended(status=1, problem=f"{answer.reason}{message}")

    def reaches_nics(self, launch: Launch) -> bool:
        """Return True: ranks are processes of their nodes."""
        del launch
        return True

    def _cancel(self, launch: Launch) -> str:
        """Cancel the job; return its last state and Slurm's reason, "" when it isn't known."""
        line = f"{_query(launch)}; {_cancel(launch)}"
        answer = self._session.run(self._controller, line, timeout_s=20)
        return "" if isinstance(answer, Unreachable) else answer.stdout.strip()


class _Lines:
    """Passes on complete lines and counts them; a partial line is kept until it is complete."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take, self._part = take, ""
        self.count = 0

    def add(self, line: str) -> None:
        if not line.endswith("\n"):
            self._part = line
            return
        self.count, self._part = self.count + 1, ""
        self._take(line)

    def end(self) -> None:
        """Pass on the last line, which may lack its newline."""
        if self._part:
            self._take(self._part)


def _folder(launch: Launch) -> str:
    """Return the path of its log, which is kept after its end, so that a retry starts nothing."""
    return f"/tmp/{launch.job}"  # noqa: S108  # private, and refused where another user created it


def followed(launch: Launch, limit_s: float, first: int) -> str:
    """Return the line that starts the AllReduce where it doesn't run yet, and prints its log.

    It runs apart from the session, so that the log can be followed again after one that broke off.
    Its exit status is the AllReduce's own, but for 255, which is ssh's.

    Args:
        launch: what to start, and where.
        limit_s: see `command`.
        first: number of the log's line to print first, from 1.
    """
    folder = _folder(launch)
    inner = f"{{ {command(launch, limit_s)}; }} >{folder}/log; echo $? >{folder}/status"
    return (
        f"d={folder}; if mkdir -m 700 $d 2>/dev/null; then : >$d/log; "
        f"setsid sh -c {shlex.quote(inner)} </dev/null >/dev/null 2>&1 & echo $! >$d/pid; fi; "
        f"[ -O $d ] || exit 1; tail -s 0.2 -n +{first} -f --pid=$(cat $d/pid) $d/log; "
        "read -r code <$d/status || code=1; [ $code != 255 ] || code=254; exit $code"
    )


_PLAIN_USER = ("setpriv", f"--reuid={SMOKE_UID}", f"--regid={SMOKE_UID}", "--clear-groups", "env")
_LOGIN = {"HOME": "/", "SHELL": "/bin/sh", "USER": SMOKE_USER, "LOGNAME": SMOKE_USER}


def command(launch: Launch, limit_s: float = 0) -> str:
    """Return the line that runs it on the controller; stderr joins stdout in one log.

    It is a job of a plain user as any other, with a job's limits and rights: what root may do, such
    as pinning memory beyond its limit or opening a device, proves nothing.
    """
    minutes = max(LONGEST_MINUTES, math.ceil(limit_s / 60))
    srun = [
        *("srun", "--mpi=pmix", f"--job-name={launch.job}", f"--partition={launch.partition}"),
        *(f"--nodelist={fold(launch.nodes)}", f"--nodes={len(launch.nodes)}"),
        *(f"--ntasks-per-node={max(1, launch.gpus)}", "--exclusive", "--kill-on-bad-exit=1"),
        # Else a rank has one core, for NCCL's threads too; NCCL keeps them near their GPU itself
        # (awsome-distributed-training, nccl-tests-container.sbatch, read 2026-11).
        "--cpu-bind=none",
        f"--time={minutes}",
        *([f"--qos={launch.qos}"] if launch.qos else []),
        *([f"--gpus-per-node={launch.gpus}"] if launch.gpus else []),
        *(_container(launch.container) if launch.container else []),
        *launch.program(),
    ]
    given = (_LOGIN | launch.variables()).items()
    variables = (f"{name}={value}" for name, value in given)
    return f"cd / && {AS_ROOT} {shlex.join([*_PLAIN_USER, *variables, *srun])} 2>&1"


_NODES_OWN = ("/usr", "/opt", "/etc/alternatives", "/etc/ld.so.cache", "/etc/nsswitch.conf")
"""What programs need of their node where the image has none: devices and settings it must get."""


def _container(image: str) -> list[str]:
    mounts = ",".join(f"{path}:{path}:ro" for path in _NODES_OWN)
    options = [f"--container-image={image}", f"--container-mounts={mounts}"]
    return [*options, "--no-container-mount-home"]


def choose_idle(
    view: SchedulerView, compute: tuple[Host, ...]
) -> tuple[tuple[Host, ...], tuple[str, ...]]:
    """Return the hosts that are idle in this view, and the names of the others."""
    if view.problem:
        return compute, ()
    idle = tuple(h for h in compute if view.states.get(h.name, "").rstrip("-+$") in FREE)
    if not idle:
        return compute, ()
    return idle, tuple(host.name for host in compute if host not in idle)


def _query(launch: Launch) -> str:
    """Return the line that prints the job's state and Slurm's reason for it."""
    return f"squeue --noheader --name={launch.job} --format='%T %r'"


def _cancel(launch: Launch) -> str:
    """Return the line that ends it; an srun that was only starting would queue its job afterwards.

    A session that ends leaves its srun alone: it has no terminal. The brackets keep the pattern
    from finding this very line.
    """
    root = f"root={AS_ROOT}"
    ended = f"$root pkill -f -- '[-]-job-name={launch.job}'"
    return f"{root}; {ended}; sleep 1; $root scancel --name={launch.job}; rm -rf {_folder(launch)}"
