"""Jobs in Slurm's queue, by its own commands on the controller."""

from __future__ import annotations

import re
import shlex

import msgspec

from ....inventory.hosts import Host
from ....schemas.derived.hostlist import expand
from ...cluster.outcome import Exit, LifecycleError, failure
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from ...status.slurm import last_error_line

_LIMIT_S = 30
_COLUMNS = ("id", "name", "user", "state", "elapsed", "nodes", "reason", "partition")
_FORMAT = "%i|%j|%u|%T|%M|%D|%R|%P"
_FIELD = re.compile(
    r"(?:^|\s)(JobName|UserId|JobState|Reason|ExitCode|Restarts|RunTime|NodeList|NumNodes|BatchHost"
    r"|AllocTRES|TRES)=(\S*)"
)
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_OVER = frozenset(
    (
        *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"),
        *("DEADLINE", "BOOT_FAIL", "REVOKED", "PREEMPTED"),
    )
)
"""States of squeue(1), "JOB STATE CODES", that a job doesn't leave."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the queue."""

    id: str
    name: str
    user: str
    state: str
    elapsed: str
    nodes: str
    reason: str
    """Why it waits, or the nodes that it has."""
    partition: str


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """One job, as `scontrol show job` has it."""

    id: str
    state: str
    reason: str
    exit_code: str
    restarts: int
    elapsed: str
    nodes: int
    batch_host: str
    """Node of its script, and of its log; "" before it starts."""
    log: str
    """Path of its log there."""
    name: str = ""
    user: str = ""
    on: tuple[str, ...] = ()
    """Its nodes; none before it has them."""
    gpus: int = 0
    """GPUs that it has of all of them, or slices of such; 0: none, or the scheduler counts none."""
    pods_of: tuple[str, ...] = ()
    """Under Kubernetes the Jobs that made its pods."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended and won't start again."""
        return self.state in _OVER

    @property
    def has_succeeded(self) -> bool:
        """Whether its program ended with 0."""
        return self.state == "COMPLETED"


class JobQueue:
    """Slurm's queue through a controller."""

    def __init__(self, session: SshSession, controller: Host) -> None:
        """Set the connection to the controller; nothing is queried yet."""
        self._session = session
        self._controller = controller

    def submit(self, script: str, user: str | None) -> str:
        """Have sbatch queue a script, and return the job's id.

        Args:
            script: what sbatch reads.
            user: who it runs as, in a login of theirs; None: who gcluster logs in as.

        Raises:
            LifecycleError: no user is given and the login is root (GC1212), or sbatch refused it
                (GC1213).
        """
        login = self._controller.ssh.user
        if user is None and login == "root":
            raise failure(
                "GC1212",
                f"gcluster logs in to {self._controller.name} as root, and a job is a user's",
                hint="name one: --user NAME",
                exit_code=Exit.USAGE,
            )
        words = ["sbatch", "--parsable"]
        line = shlex.join(words)
        if user is not None and user != login:
            line = as_root(self._controller, ["runuser", "-l", user, "-c", line])
        answer = self._session.run(self._controller, line, stdin=script, timeout_s=_LIMIT_S)
        if isinstance(answer, Unreachable):
            raise self._silent(answer.reason)
        if answer.returncode != 0:
            raise failure("GC1213", f"the job was not queued: {last_error_line(answer)}")
        return answer.stdout.split()[-1].partition(";")[0]

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs of the queue, and those that ended a short while ago.

        How long a job stays there is slurm.conf's MinJobAge, 300 s where nothing is said.
        """
        text = self._output_of(
            f"squeue --noheader --states=all --sort=i --format={shlex.quote(_FORMAT)}"
        )
        rows = (line.split("|", len(_COLUMNS) - 1) for line in text.splitlines())
        found = (dict(zip(_COLUMNS, row, strict=True)) for row in rows if len(row) == len(_COLUMNS))
        return tuple(Job(**row) for row in found)

    def state(self, job: str) -> JobState:
        """Return the state of one job.

        Raises:
            LifecycleError: Slurm knows no such job (GC1214), or is silent (GC1215).
        """
        text = self._output_of(f"scontrol show job {shlex.quote(_id(job))}", job)
        fields = dict(_FIELD.findall(text))
        log = re.search(r"^\s*StdOut=(.*)$", text, re.MULTILINE)
        listed = fields.get("NodeList", "")  # empty, or "(null)", until it has nodes
        given = _GPUS.search(fields.get("AllocTRES") or fields.get("TRES", ""))
        restarts, nodes = fields.get("Restarts", "0"), fields.get("NumNodes", "0").partition("-")[0]
        return JobState(
            id=job,
            state=fields.get("JobState", ""),
            reason=fields.get("Reason", ""),
            exit_code=fields.get("ExitCode", ""),
            restarts=int(restarts) if restarts.isdigit() else 0,
            elapsed=fields.get("RunTime", ""),
            nodes=int(nodes) if nodes.isdigit() else 0,
            batch_host=fields.get("BatchHost", ""),
            log=log[1].strip() if log else "",
            name=fields.get("JobName", ""),
            user=fields.get("UserId", "").partition("(")[0],
            on=() if listed in {"", "(null)"} else tuple(expand(listed)),
            gpus=0 if given is None else int(given[1]),
        )

    def cancel(self, job: str) -> None:
        """End a job, or take it out of the queue; raises as `state`."""
        self._output_of(as_root(self._controller, ["scancel", "--verbose", _id(job)]), job)

    def _output_of(self, line: str, job: str = "") -> str:
        answer = self._session.run(self._controller, line, timeout_s=_LIMIT_S)
        if isinstance(answer, Unreachable):
            raise self._silent(answer.reason)
        if job and "Invalid job id" in answer.stderr:
            raise failure(
                "GC1214",
                f"Slurm knows no job {job}: it never was, or ended long ago",
                hint="`gcluster jobs` lists those that it knows",
            )
        if answer.returncode != 0:
            raise self._silent(last_error_line(answer))
        return answer.stdout

    def _silent(self, reason: str) -> LifecycleError:
        return failure("GC1215", f"Slurm on {self._controller.name} gives no answer: {reason}")


def _id(job: str) -> str:
    """Return a job's id as it is written; raises LifecycleError (GC1214) for other words."""
    if not re.fullmatch(r"[0-9]{1,10}(_[0-9]{1,10})?", job):
        raise failure("GC1214", f'"{job}" is no id of a job', hint="as `gcluster jobs` shows it")
    return job
