"""A double of a scheduler: it behaves as Slurm does with State=CLOUD nodes, in a file.

It allocates nodes to waiting jobs, requests those that are off, requeues the jobs of nodes that
were given up, lets idle nodes go, and has a clock that moves by a step with each observation. What
it doesn't do: priorities, and jobs that share a node.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gcluster.lifecycle.operations.burst.agent.scheduler import JobSeen, NodeSeen, Request, Seen
from gcluster.lifecycle.operations.burst.policy import PendingJob


class DoubleNode(msgspec.Struct, kw_only=True):
    """A node; `elastic` ones come and go."""

    partition: str
    elastic: bool
    state: str
    address: str = ""
    since: float = 0.0
    job: str = ""
    reason: str = ""


class DoubleJob(msgspec.Struct, kw_only=True):
    """A job and its state."""

    job: PendingJob
    partition: str
    run_s: float
    nodes: list[str] = []
    started: float | None = None
    ended: float | None = None
    answer: str = ""
    requeued: int = 0


class ControllerState(msgspec.Struct, kw_only=True):
    """All that the double knows."""

    now: float
    step: float = 10.0
    resume_timeout: float = 600.0
    suspend: float = 60.0
    nodes: dict[str, DoubleNode] = {}
    jobs: dict[str, DoubleJob] = {}
    requests: dict[str, Request] = {}
    router: str = ""
    """Address that registering nodes seem to have; "": their own."""
    mute: frozenset[str] = frozenset()
    """Nodes that never register."""
    request_count: int = 0


class ControllerDouble:
    """Implements `Scheduler` over a file, so that it outlives a killed agent."""

    def __init__(self, path: Path) -> None:
        """Keep everything at this path."""
        self.path = path
        self._lock = threading.RLock()

    def load(self) -> ControllerState:
        """Return what it knows."""
        return msgspec.json.decode(self.path.read_bytes(), type=ControllerState)

    def save(self, answer: ControllerState) -> None:
        """Replace what it knows, whole."""
        fresh = self.path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(answer))
        fresh.replace(self.path)

    @contextmanager
    def changed(self) -> Iterator[ControllerState]:
        """Give what it knows to change: its calls come from several threads."""
        with self._lock:
            answer = self.load()
            yield answer
            self.save(answer)

    def observe(self) -> Seen:
        """Let a step of time pass, and return the state of jobs and nodes."""
        with self.changed() as answer:
            answer.now += answer.step
            for act in (_register, _finish, _schedule, _time_out, _let_go):
                act(answer)
        return Seen(
            now=answer.now,
            requests=tuple(answer.requests.values()),
            nodes={
                name: NodeSeen(
                    state=node.state,  # type: ignore[arg-type]  # a NodeState
                    reason=node.reason,
                    address=node.address,
                    idle_since=node.since if node.state == "here" and not node.job else None,
                )
                for name, node in answer.nodes.items()
            },
            jobs=tuple(
                JobSeen(
                    job=each.job,
                    partition=each.partition,
                    nodes=tuple(each.nodes),
                    ends=None if each.started is None else each.started + each.run_s,
                )
                for each in answer.jobs.values()
                if each.ended is None
            ),
        )

    def wait(self, seconds: float) -> None:
        """Let no time pass: each look does."""

    def remove_requests(self, requests: Collection[str]) -> None:
        """Drop requests."""
        with self.changed() as answer:
            answer.requests = {k: r for k, r in answer.requests.items() if k not in requests}

    def place(self, addresses: Mapping[str, str]) -> None:
        """Note the addresses; nodes register with the next look."""
        with self.changed() as answer:
            for name, address in addresses.items():
                answer.nodes[name].address = address

    def give_up(self, nodes: Collection[str], reason: str) -> None:
        """Put nodes down, and their jobs back in line."""
        with self.changed() as answer:
            for name in nodes:
                _down(answer, name, reason)

    def forget(self, nodes: Collection[str]) -> None:
        """Let nodes that are down be requested again."""
        with self.changed() as answer:
            for name in nodes:
                if answer.nodes[name].state == "down":
                    answer.nodes[name] = _off(answer.nodes[name])

    def end_power_down(self, nodes: Collection[str]) -> None:
        """Know it already: what was let go is off here at once."""

    def release(self, nodes: Collection[str]) -> None:
        """Power idle nodes down."""
        with self.changed() as answer:
            for name in nodes:
                if answer.nodes[name].state == "here" and not answer.nodes[name].job:
                    answer.nodes[name] = _off(answer.nodes[name])

    def move(self, job: str, partition: str, reason: str) -> None:
        """Move a job that waits."""
        with self.changed() as answer:
            if not answer.jobs[job].nodes and answer.jobs[job].ended is None:
                answer.jobs[job].partition = partition
                answer.jobs[job].answer = reason

    def annotate(self, reasons: Mapping[str, str]) -> None:
        """Record the comments of jobs."""
        with self.changed() as answer:
            for job, reason in reasons.items():
                answer.jobs[job].answer = reason


def _off(node: DoubleNode) -> DoubleNode:
    return DoubleNode(partition=node.partition, elastic=node.elastic, state="off")


def _down(answer: ControllerState, name: str, reason: str) -> None:
    node = answer.nodes[name]
    node.state, node.reason = "down", reason
    job = answer.jobs.get(node.job)
    node.job = ""
    if job is not None:
        for other in job.nodes:
            answer.nodes[other].job = ""
            answer.nodes[other].since = answer.now
        job.nodes, job.started = [], None
        job.requeued += 1


def _register(answer: ControllerState) -> None:
    for name, node in answer.nodes.items():
        if node.state == "coming" and node.address and name not in answer.mute:
            node.state, node.since = "here", answer.now
            node.address = answer.router or node.address


def _finish(answer: ControllerState) -> None:
    for job in answer.jobs.values():
        if job.nodes and all(answer.nodes[name].state == "here" for name in job.nodes):
            if job.started is None:
                job.started = answer.now
            elif answer.now - job.started >= job.run_s:
                job.ended = answer.now
                for name in job.nodes:
                    answer.nodes[name].job, answer.nodes[name].since = "", answer.now
                job.nodes = []


def _schedule(answer: ControllerState) -> None:
    for key, job in answer.jobs.items():
        if job.nodes or job.ended is not None or job.job.held:
            continue
        free = [
            name
            for name, node in answer.nodes.items()
            if node.partition == job.partition and node.state in {"here", "off", "coming"}
            and not node.job and not (node.state == "off" and not node.elastic)
        ]  # fmt: skip
        free.sort(key=lambda name: answer.nodes[name].state != "here")
        chosen = free[: job.job.nodes]
        if len(chosen) < job.job.nodes:
            continue
        job.nodes = chosen
        started = []
        for name in chosen:
            answer.nodes[name].job = key
            if answer.nodes[name].state == "off":
                answer.nodes[name].state, answer.nodes[name].since = "coming", answer.now
                started.append(name)
        if started:
            _request(answer, "resume", started)


def _time_out(answer: ControllerState) -> None:
    late = [
        name
        for name, node in answer.nodes.items()
        if node.state == "coming" and answer.now - node.since > answer.resume_timeout
    ]
    for name in late:
        _down(answer, name, "ResumeTimeout reached")
    if late:
        _request(answer, "failed", late)


def _let_go(answer: ControllerState) -> None:
    idle = [
        name
        for name, node in answer.nodes.items()
        if node.elastic and node.state == "here" and not node.job
        and answer.now - node.since >= answer.suspend
    ]  # fmt: skip
    for name in idle:
        answer.nodes[name] = _off(answer.nodes[name])
    if idle:
        _request(answer, "suspend", idle)


def _request(answer: ControllerState, kind: str, nodes: list[str]) -> None:
    answer.request_count += 1
    key = f"{answer.request_count:04d}-{kind}"
    answer.requests[key] = Request(id=key, kind=kind, nodes=tuple(nodes), at=answer.now)
