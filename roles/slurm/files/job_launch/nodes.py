"""The nodes of a job's allocation: which there are, which can be used, which don't answer."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence

JOB = os.environ.get("SLURM_JOB_ID", "")
HOST = os.environ.get("SLURMD_NODENAME", "")
UNUSABLE = ("down", "drain", "fail", "maint", "power", "boot", "*")
"""Parts of a state by sinfo(1), "NODE STATE CODES", with which a node starts no further step."""
DISCARD = 9
"""A port where nothing listens (RFC 863, which no distribution switches on)."""
ROUND_S = 2.0
ANSWER_S = 2.0
SILENT_S = 8.0
"""So long a node doesn't answer until it counts as lost, where nothing is printed meanwhile."""
SILENT_AND_PRINTING_S = 45.0
"""And where the job still prints: its own network may work while that of the daemons doesn't."""
BEGINS_S, BEGINS_AFTER_EPILOG_S = 5, 20
"""When a job that is queued again may start: what it has left on nodes must be gone by then."""
GIVEN_UP_S = 300.0
"""So long Slurm takes to give a node up (SlurmdTimeout)."""


def output_of(*words: str) -> str | None:
    """Return what one of Slurm's commands printed; None: it failed, as without a controller."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode("utf-8", "replace").strip()


def sizes(chosen: Sequence[str], *, tasks: int) -> list[str]:
    """Return srun's options for so many tasks on these nodes."""
    return [f"--nodes={len(chosen)}", f"--ntasks={tasks}", f"--nodelist={','.join(chosen)}"]


def environment() -> dict[str, str]:
    """Return the environment of srun, without the sizes that the job had when it started."""
    stale = {
        "SLURM_JOB_NODELIST",
        "SLURM_JOB_NUM_NODES",
        "SLURM_NNODES",
        "SLURM_NODELIST",
        "SLURM_NPROCS",
        "SLURM_NTASKS",
        "SLURM_TASKS_PER_NODE",
    }
    return {key: value for key, value in os.environ.items() if key not in stale}


def allocated() -> list[str]:
    """Return the job's nodes in Slurm's order; those that Slurm gave up are gone from there."""
    listed = output_of("squeue", "--noheader", "--format=%N", "--jobs=" + JOB)
    nodes = listed or os.environ.get("SLURM_JOB_NODELIST", "")
    names = output_of("scontrol", "show", "hostnames", nodes)
    return (names or "").split()


def states(nodes: Sequence[str]) -> dict[str, str]:
    """Return node -> state, as sinfo has it; empty where the controller is silent."""
    listed = output_of(
        "sinfo", "--noheader", "--Node", "--nodes=" + ",".join(nodes), "--format=%N %T"
    )
    return dict(line.split(None, 1) for line in (listed or "").splitlines() if " " in line)


def unusable(nodes: Sequence[str]) -> dict[str, str]:
    """Return node -> state of those that start no further step."""
    found = states(nodes)
    return {node: state for node, state in found.items() if any(word in state for word in UNUSABLE)}


def idle(partition: str) -> int:
    """Return how many nodes of a partition are free."""
    words = ("--partition=" + partition, "--states=idle", "--format=%D %T")
    listed = output_of("sinfo", "--noheader", *words) or ""
    lines = (line.split() for line in listed.splitlines())
    return sum(int(count) for count, state in lines if state == "idle")


def step_of(name: str) -> str:
    """Return the id of the job's step of this name, "" where it has ended."""
    words = ("squeue", "--steps", "--noheader", "--jobs=" + JOB, "--format=%i %j")
    for line in (output_of(*words) or "").splitlines():
        step, _, found = line.partition(" ")
        if found.strip() == name:
            return step
    return ""


def address(node: str) -> str:
    """Return the address by which Slurm reaches a node; its name where that is not known."""
    return addresses([node])[node]


def addresses(nodes: Sequence[str]) -> dict[str, str]:
    """Return node -> address as `address` does, by one request: a job may have thousands."""
    found = {node: node for node in nodes}
    text = output_of("scontrol", "show", "node", ",".join(nodes)) if nodes else ""
    name = ""
    for key, value in re.findall(r"\b(NodeName|NodeAddr)=(\S+)", text or ""):
        if key == "NodeName":
            name = value
        elif name in found:
            found[name] = value
    return found


def configured(name: str) -> str:
    """Return a setting of slurm.conf, "" where it has none."""
    for line in (output_of("scontrol", "show", "config") or "").splitlines():
        key, _, value = line.partition("=")
        if re.sub(r"\[\d+\]$", "", key.strip()) == name:
            return value.strip().replace("(null)", "")
    return ""


def daemon_port() -> int:
    """Return the port of slurmd."""
    first = configured("SlurmdPort").split("-")[0]
    return int(first) if first.isdigit() else 6818


def keep(names: Sequence[str]) -> None:
    """Give all other nodes back; the one of the job's script can't be among them."""
    # Inside a job scontrol would write slurm_job_ID_resize.sh into the folder that it runs in.
    bare = ("env", "-u", "SLURM_JOB_ID", "-u", "SLURM_JOBID")
    words = (*bare, "scontrol", "update", "JobId=" + JOB)
    output_of(*words, "NodeList=" + ",".join(names))


def remark(key: str, value: str) -> None:
    """Write KEY=VALUE into the job's comment, which squeue and scontrol show, for an older one."""
    shown = output_of("scontrol", "show", "job", JOB) or ""
    found = re.search(r"\bComment=(.*)$", shown, re.MULTILINE)
    words = [word for word in (found[1] if found else "").split() if word.partition("=")[0] != key]
    output_of(
        "scontrol", "update", "JobId=" + JOB, "Comment=" + " ".join([*words, f"{key}={value}"])
    )


def requeue(gone: Iterable[str] = ()) -> bool:
    """Put the job back in line, to start as soon as there is room; whether Slurm did.

    Slurm waits for all nodes of a job before it may start again, for one that is lost until it has
    given that up; a job can leave its nodes, but that of its script. Then it waits until the
    credentials of the first run have expired (cred_expire, 120 s), unless the job has a time to
    start in the future when the last node is free (batch_requeue_fini in Slurm's job_mgr.c). It can
    have one from the moment on at which it is queued again: before the signal that Slurm sends ends
    who calls this.

    Args:
        gone: nodes that are lost.
    """
    after_s = BEGINS_AFTER_EPILOG_S if configured("Epilog") else BEGINS_S
    lost = set(gone)
    kept = [node for node in allocated() if node not in lost] if lost else []
    if kept:
        keep(kept)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if output_of("scontrol", "requeue", JOB) is None:
        return False
    output_of("scontrol", "update", "JobId=" + JOB, f"StartTime=now+{after_s}")
    return True


def answers(where: str, daemon: int) -> bool:
    """Whether a machine is there.

    Its kernel refuses a connection to a port where nothing listens. Where a firewall is silent the
    daemon is looked for, which writes a line into its log for each connection.
    """
    return any(_connects(where, port) for port in (DISCARD, daemon))


def _connects(where: str, port: int) -> bool:
    try:
        socket.create_connection((where, port), timeout=ANSWER_S).close()
    except OSError as error:
        return error.errno == errno.ECONNREFUSED
    return True


class Watch:
    """Looks every two seconds whether nodes answer, and knows since when one doesn't."""

    def __init__(self, nodes: Iterable[str]) -> None:
        """Keep the names; nothing runs yet."""
        self._nodes = list(nodes)
        self._port = 0
        self._places: dict[str, str] = {}
        self._silent_since: dict[str, float] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start to look; a job's processes don't wait until it is known where its nodes are."""
        threading.Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        """Look up where the nodes are, then start a thread for each: a dead one takes seconds."""
        self._port, self._places = daemon_port(), addresses(self._nodes)
        for node in self._places:
            threading.Thread(target=self._look, args=(node,), daemon=True).start()

    def _look(self, node: str) -> None:
        while True:
            began = time.monotonic()
            here = answers(self._places[node], self._port)
            with self._lock:
                if here:
                    self._silent_since.pop(node, None)
                else:
                    self._silent_since.setdefault(node, began)
            time.sleep(max(0.1, ROUND_S - (time.monotonic() - began)))

    def silent(self, nodes: Iterable[str]) -> list[str]:
        """Return those that don't answer now."""
        with self._lock:
            return [node for node in nodes if node in self._silent_since]

    def lost(self, nodes: Iterable[str], printed_at: float) -> list[str]:
        """Return those that count as lost.

        What the other processes print when they miss one of them is no progress: silence counts
        from there too.

        Args:
            nodes: of the step.
            printed_at: when the job printed last (monotonic).
        """
        now = time.monotonic()
        with self._lock:
            since = {node: self._silent_since.get(node) for node in nodes}
        is_quiet = now - printed_at >= SILENT_S
        return [
            node
            for node, began in since.items()
            if began is not None
            and now - began
            >= (SILENT_S if is_quiet or printed_at < began + 3 else SILENT_AND_PRINTING_S)
        ]


def guard(host: str) -> None:
    """Queue the job again when the node of its script is lost; runs on another of its nodes.

    With --no-kill Slurm would keep the job on the nodes left, without the script that starts
    anything there. That node can't be left: the others are kept until Slurm has given it up.
    """
    watch = Watch([host])
    watch.start()
    while not watch.lost([host], 0.0):
        time.sleep(1)
    until = time.monotonic() + GIVEN_UP_S
    while time.monotonic() < until and watch.silent([host]):
        if "down" in states([host]).get(host, ""):
            break
        time.sleep(2)
    while not requeue():
        time.sleep(5)
