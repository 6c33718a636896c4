"""Runs one test as a Slurm job that outlives gcluster: its srun is a unit on the controller.

The unit's output is a file on the controller. gcluster follows it; after a kill, or after its
machine was suspended, it opens the file again and continues reading, while the job has continued to
run.
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ....inventory.accounting.records import SMOKE_USER
from ....inventory.hosts import Host
from ....schemas.derived.hostlist import fold
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from ...smoke.launch import Launch
from .facts.probe import PATH

FOLDER = "/var/lib/gcluster/acceptance"
"""On the controller: the outputs of jobs, by acceptance."""
PROGRAMS = "/usr/libexec/gcluster"
"""On every node: what role allreduce puts there."""
ENDED = "# gcluster ended "
NODE_ENDED = "# gcluster node ended "
_END = re.compile(rf"^{ENDED}(\d+)$", re.MULTILINE)
AGAIN = "# gcluster again"
"""The line between two runs of a soak."""
POLL_S = 2.0
QUEUE_S = 300.0
"""Seconds that a job may wait in the queue: its nodes were idle when it was sent."""
NODE_S = 2.0
"""Seconds that each node adds, as for the gate (`smoke.launching.job.NODE_S`)."""
_LIMIT_S = 60


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job: a command on nodes."""

    name: str
    """Of the job, of its unit and of its file: the same for the same run of the same test."""
    launch: Launch
    command: str
    """A shell line that each rank runs."""
    limit_s: float
    """Seconds that it may run."""
    most_s: float = math.inf
    """Seconds that its partition lets a job run."""
    user: str = ""
    """The account that it runs as; "": root."""
    on_controller: bool = False
    """Whether the controller runs the line itself, as root."""
    container: str = ""
    """Image that its ranks run in; "": they run on their nodes."""
    by_node: bool = False
    """Whether each node works by itself: its name is before its lines, a failure ends no other."""
    mpi: bool = True
    soak_s: float = 0
    """Seconds for which it is begun again; 0: it is run once."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended."""

    text: str
    problem: str = ""
    """Why it has no end of its own; "": it has."""
    status: int = 0
    started: bool = True
    """False: it never left the queue, so nothing is known of its nodes."""


def job_name(acceptance: str, *words: object) -> str:
    """Return the name of a job: short, and its own for each test, target and repetition."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:10]
    return f"gcluster-acceptance-{acceptance}-{digest}"


def run_job(session: SshSession, controller: Host, job: Job, tick: Callable[[], None]) -> Output:
    """Start a job, or resume following a started one, and return its output.

    Args:
        session: reaches the controller.
        controller: where srun is.
        job: what to run.
        tick: called at each poll: it may raise, and the job is then ended.
    """
    start = as_root(controller, ["sh", "-c", _start(job)])
    answer = session.run(controller, start, stdin=_unit(job), timeout_s=_LIMIT_S)
    if isinstance(answer, Unreachable):
        return Output(text="", problem=answer.reason, started=False)
    if answer.returncode:
        return Output(text="", problem=answer.stderr.strip()[-300:], started=False)
    try:
        return _follow(session, controller, job, tick)
    except BaseException:
        end_job(session, controller, job.name)
        raise


def is_there(session: SshSession, controller: Host, name: str) -> bool:
    """Return whether a job of this name is running, or has ended and left its output."""
    script = f"systemctl -q is-active {name} || grep -qs '^{ENDED}' {_file(name)}"
    answer = session.run(controller, as_root(controller, ["sh", "-c", script]), timeout_s=_LIMIT_S)
    return not isinstance(answer, Unreachable) and answer.returncode == 0


def _follow(session: SshSession, controller: Host, job: Job, tick: Callable[[], None]) -> Output:
    text, read = "", 0
    ends = time.monotonic() + QUEUE_S + job.limit_s + job.soak_s + NODE_S * len(job.launch.nodes)
    while True:
        tick()
        poll = as_root(controller, ["sh", "-c", _poll_line(job.name, read)])
        answer = session.run(controller, poll, timeout_s=_LIMIT_S)
        if not isinstance(answer, Unreachable) and answer.returncode == 0:
            (state, size), _, more = _state(answer.stdout)
            text, read = text + more, size
            if ended := _END.search(text):
                return Output(text=text[: ended.start()], status=int(ended[1]))
            if state in {"inactive", "failed", "unknown"}:
                return Output(text=text, problem="its unit on the controller ended without a word")
        if time.monotonic() > ends:
            state = end_job(session, controller, job.name)
            waits = state.startswith("PENDING")
            why = f"the job did not start ({state.partition(' ')[2]})" if waits else "out of time"
            return Output(text=text, problem=why, started=not waits)
        time.sleep(POLL_S)


def end_job(session: SshSession, controller: Host, name: str) -> str:
    """End a job and delete its output; return its last state and Slurm's reason, "" unknown."""
    script = (
        f"squeue --noheader --name={name} --format='%T %r' 2>/dev/null; "
        f"systemctl stop {name}; scancel --name={name}; rm -f {_file(name)}*"
    )
    answer = session.run(controller, as_root(controller, ["sh", "-c", script]), timeout_s=_LIMIT_S)
    return "" if isinstance(answer, Unreachable) else answer.stdout.strip()


def forget_jobs(session: SshSession, controller: Host, acceptance: str) -> None:
    """Remove the outputs of an acceptance from the controller: its results are stored."""
    script = f"rm -f {FOLDER}/gcluster-acceptance-{acceptance}-*"
    session.run(controller, as_root(controller, ["sh", "-c", script]), timeout_s=_LIMIT_S)


def _file(name: str) -> str:
    return f"{FOLDER}/{name}.log"


def _poll_line(name: str, read: int) -> str:
    """Return the shell lines that print whether the unit is active, and its new output."""
    file = _file(name)
    return (
        f"s=$(systemctl is-active {name}); n=$(stat -c %s {file}) || exit 1; echo $s $n; "
        f"tail -c +{read + 1} {file} | head -c $((n - {read}))"
    )


def _state(text: str) -> tuple[tuple[str, int], str, str]:
    first, newline, more = text.partition("\n")
    state, _, size = first.partition(" ")
    return (state, int(size)), newline, more


def _start(job: Job) -> str:
    """Return the shell lines that start the unit, unless it runs or has ended well.

    Its script comes by standard input: systemd would put its own values for names in an argument.
    """
    file, name = _file(job.name), job.name
    words = [
        *("systemd-run", "--quiet", "--collect", f"--unit={name}", "--working-directory=/tmp"),
        *(f"--property=StandardOutput=append:{file}", f"--property=StandardError=append:{file}"),
        *([f"--uid={job.user}"] if job.user else []),
        *("sh", f"{file}.sh"),
    ]
    return (
        f"set -e; install -d -m 0755 {FOLDER}; "
        f"if systemctl -q is-active {name} || grep -qs '^{ENDED}' {file}; then exit 0; fi; "
        f"scancel --name={name} 2>/dev/null || true; : > {file}; cat > {file}.sh; "
        f"{shlex.join(words)}"
    )


def _unit(job: Job) -> str:
    srun = shlex.join(_srun(job))
    variables = " ".join(f"{k}={shlex.quote(v)}" for k, v in job.launch.variables().items())
    once = f"(\n{job.command}\n)" if job.on_controller else f"env {variables} {srun}"
    if job.soak_s:
        once = (
            f"e=$(($(date +%s) + {job.soak_s:.0f})); s=0; while [ $(date +%s) -lt $e ]; "
            f"do {once} || {{ s=$?; break; }}; echo '{AGAIN}'; done; (exit $s)"
        )
    return f"{once}\necho '{ENDED}'$?\n"


def _srun(job: Job) -> Sequence[str]:
    launch = job.launch
    minutes = int(min(job.limit_s + NODE_S * len(launch.nodes) + 60, job.most_s) // 60)
    tasks = 1 if job.by_node else max(1, launch.gpus)
    line = f'PATH="{PATH}"; {job.command}'
    if job.by_node:
        # The name goes before each line: of many nodes one output is read, node by node.
        line = (
            f"{{ {job.command}; echo '{NODE_ENDED}'$?; }} 2>&1 | sed -u \"s/^/@$SLURMD_NODENAME /\""
        )
        line = f'PATH="{PATH}"; {line}'
    return [
        *("srun", f"--job-name={job.name}", f"--partition={launch.partition}"),
        *(["--mpi=pmix"] if job.mpi and not job.container else ["--mpi=none"]),
        *(_in_container(job.container) if job.container else []),
        *(f"--nodelist={fold(launch.nodes)}", f"--nodes={len(launch.nodes)}"),
        *(f"--ntasks-per-node={tasks}", "--exclusive", f"--time={minutes}"),
        "--cpu-bind=none",  # as the gate has it (smoke.launching.slurm)
        *(["--kill-on-bad-exit=0", "--wait=0"] if job.by_node else ["--kill-on-bad-exit=1"]),
        *([f"--qos={launch.qos}"] if launch.qos and job.user in {"", SMOKE_USER} else []),
        *([f"--gpus-per-node={launch.gpus}"] if launch.gpus else []),
        *("sh", "-c", line),
    ]


def _in_container(image: str) -> Sequence[str]:
    """Return pyxis' options: the image is the user's, of the node it has our programs alone."""
    mounts = f"--container-mounts={PROGRAMS}:{PROGRAMS}:ro"
    return f"--container-image={image}", mounts, "--no-container-mount-home"


def by_node(text: str, nodes: Sequence[str]) -> Mapping[str, tuple[str, int | None]]:
    """Return node -> what it printed and its exit status; None: it didn't come to its end."""
    lines: dict[str, list[str]] = {name: [] for name in nodes}
    for line in text.splitlines():
        name, _, rest = line.removeprefix("@").partition(" ")
        if line.startswith("@") and name in lines:
            lines[name].append(rest)
    found = {}
    for name, output in lines.items():
        ended = [line for line in output if line.startswith(NODE_ENDED)]
        status = int(ended[-1].removeprefix(NODE_ENDED)) if ended else None
        printed = "\n".join(line for line in output if not line.startswith(NODE_ENDED))
        found[name] = (printed, status)
    return found
