"""Kubernetes for the burst agent: polled by kubectl on a control plane, with administrator rights.

Kubernetes has no power states of nodes. They are recorded in a ConfigMap of the cluster, so that
an agent that is killed decides as the one before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import msgspec

from .....inventory.compile.kubernetes_objects.objects import SYSTEM_NAMESPACE
from .....schemas.structure.decoding import decode_json
from ....kubernetes.difference import marks_of
from ....kubernetes.kubectl import ApiRefused, ApiSilent, Kubectl, rows
from ....kubernetes.observe import PodSeen, holding, see_pods
from ....kubernetes.settle import mark_nodes
from ....scheduler.base import SchedulerSilent as OtherSilent
from ....scheduler.kubernetes import Kubernetes
from ..agent import scheduler as agent
from ..agent.scheduler import MARK, JobSeen, SchedulerRefused, SchedulerSilent, Seen
from ..policy import PendingJob
from .demand import HOST, Placed, Room, WaitingPod, amount, placed
from .power import ElasticNode
from .reading import (
    ELASTIC_NODE_FIELDS,
    IDLE_SINCE,
    MESSAGE,
    UNPLACED,
    WAITING_FIELDS,
    Power,
    waiting_pods,
)

RECORD = "gcluster-elastic"
"""ConfigMap in gcluster-system: node -> its `Power`."""
UNPLACED_S = 60.0
"""Seconds after which a pod that isn't placed on a node with room for it awaits something else."""
_SYSTEM = frozenset({"kube-system", SYSTEM_NAMESPACE})
_SHARED = ("cpu", "memory", "ephemeral-storage", "pods")
"""What the kubelets of one machine's nodes report alike."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What an elastic node is like when it is there."""

    marks: dict[str, Any]
    """Its `labels` and `taints`."""
    devices: dict[str, int]
    """Resource -> amount, of its devices."""


class KubernetesController:
    """The scheduler that the agent serves; see `BurstScheduler`."""

    def __init__(
        self,
        kubectl: Kubectl,
        shapes: Mapping[str, Shape],
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set the API; nothing is queried yet.

        Args:
            kubectl: the API, by the cluster's control planes.
            shapes: node that may come -> what it is like, in the order in which they are requested.
            clock: seconds since 1970. All times of the records are of it.
            sleep: waits.
        """
        self._kubectl = kubectl
        self._shapes = dict(shapes)
        self._clock = clock
        self._sleep = sleep

    def observe(self) -> Seen:
        """Return the nodes and who waits for some; request nodes, and label those that came."""
        with _translated():
            now = self._clock()
            found = {
                row["name"]: row for row in rows(self._kubectl, "nodes", fields=ELASTIC_NODE_FIELDS)
            }
            pods = {
                name: [pod for pod in on if not _is_movable(pod)]
                for name, on in holding(see_pods(self._kubectl)).items()
            }
            queued = (
                "pods",
                "--all-namespaces",
                "--field-selector=spec.nodeName=,status.phase=Pending",
            )
            waiting = waiting_pods(rows(self._kubectl, *queued, fields=WAITING_FIELDS))
            before = self._records()
            nodes = {
                name: ElasticNode(name, found.get(name), pods.get(name, []), before.get(name), now)
                for name in self._shapes
            }
            self._mark(nodes)
            there = {name: node.seen() for name, node in nodes.items()}
            self._note(nodes)
            self._forget_gone(nodes)
            placing = placed(waiting, self._rooms(nodes, there, found))
            self._set_aside(waiting, placing, nodes, now)
            for name in placing.nodes:
                if nodes[name].is_off:
                    nodes[name].power = Power(state="requested", at=now)
                    there[name] = agent.NodeSeen(state="coming")
            self._record(before, {name: node.power for name, node in nodes.items()})
        return Seen(now=now, nodes=there, jobs=tuple(_jobs(waiting, placing, there)))

    def wait(self, seconds: float) -> None:
        """Wait: pods are seen at the next poll."""
        self._sleep(seconds)

    def remove_requests(self, requests: Collection[str]) -> None:
        """Do nothing: a request is a pod that waits."""

    def place(self, addresses: Mapping[str, str]) -> None:
        """Do nothing: kubelets report their addresses themselves."""

    def give_up(self, nodes: Collection[str], reason: str) -> None:
        """Record why nodes don't come; pods get others."""
        with _translated():
            now = self._clock()
            self._record({}, {n: Power(state="down", at=now, reason=reason) for n in nodes})

    def forget(self, nodes: Collection[str]) -> None:
        """Remove the record of nodes: pods may have them again."""
        with _translated():
            self._record(dict.fromkeys(nodes), dict.fromkeys(nodes))

    def end_power_down(self, nodes: Collection[str]) -> None:
        """Remove the nodes' objects, and the records of those that didn't fail."""
        with _translated():
            self._kubectl.text("delete", "node", "--ignore-not-found", "--wait=false", *nodes)
            known = self._records()
            ended = [n for n in nodes if n in known and known[n].state != "down"]
            self._record(dict.fromkeys(ended), dict.fromkeys(ended))

    def release(self, nodes: Collection[str]) -> None:
        """Cordon idle nodes; a later poll finds them free, or a pod that was just placed."""
        with _translated():
            Kubernetes(self._kubectl).drain(nodes, f"{MARK}idle for longer than suspend_after")
            now = self._clock()
            self._record({}, {name: Power(state="draining", at=now) for name in nodes})

    def move(self, job: str, partition: str, reason: str) -> None:  # noqa: ARG002  # the interface
        """Refuse: pods of a job can't be moved to other nodes' queue."""
        raise SchedulerRefused(f"{job} can't be moved: Kubernetes has no spill")

    def annotate(self, reasons: Mapping[str, str]) -> None:
        """Put the messages on pods; one that is gone needs none."""
        with _translated():
            for pod, text in reasons.items():
                namespace, _, name = pod.partition("/")
                self._kubectl.run(
                    *("annotate", "pod", name, f"--namespace={namespace}", "--overwrite"),
                    f"{MESSAGE}={' '.join(text.split())}",
                )

    def _records(self) -> dict[str, Power]:
        text = self._kubectl.text(
            *("get", "configmap", RECORD, f"--namespace={SYSTEM_NAMESPACE}"),
            *("--ignore-not-found", "--output=json"),
        )
        data = (msgspec.json.decode(text) if text.strip() else {}).get("data") or {}
        return {name: decode_json(one, Power) for name, one in data.items()}

    def _record(
        self, before: Mapping[str, Power | None], after: Mapping[str, Power | None]
    ) -> None:
        """Write what differs; each node is a field of its own, so that no write undoes another."""
        data = {
            name: None if power is None else msgspec.json.encode(power).decode()
            for name, power in after.items()
            if (name in before if power is None else power != before.get(name))
        }
        if not data:
            return
        where = (RECORD, f"--namespace={SYSTEM_NAMESPACE}")
        patch = f"--patch={msgspec.json.encode({'data': data}).decode()}"
        try:
            self._kubectl.text("patch", "configmap", *where, "--type=merge", patch)
        except ApiRefused as refused:
            if "not found" not in refused.words.lower():
                raise
            self._kubectl.run("create", "configmap", *where)
            self._kubectl.text("patch", "configmap", *where, "--type=merge", patch)

    def _mark(self, nodes: Mapping[str, ElasticNode]) -> None:
        """Give nodes that came the labels and taints of their pool, which plugins go by."""
        for name, node in nodes.items():
            if node.live is not None:
                marks = marks_of(self._shapes[name].marks, node.live)
                if marks is not None:
                    mark_nodes(self._kubectl, [name], marks)

    def _note(self, nodes: Mapping[str, ElasticNode]) -> None:
        """Write since when nodes are idle, and give those back to pods that got one."""
        resumed = [name for name, node in nodes.items() if node.resumes]
        Kubernetes(self._kubectl).resume(resumed)
        for name, node in nodes.items():
            if node.notes is not None:
                word = f"{IDLE_SINCE}={node.notes}" if node.notes else f"{IDLE_SINCE}-"
                self._kubectl.text("annotate", "node", name, "--overwrite", word)

    def _forget_gone(self, nodes: Mapping[str, ElasticNode]) -> None:
        """Remove objects of nodes whose machine is gone, which an agent that was killed left."""
        if gone := [name for name, node in nodes.items() if node.is_gone]:
            self._kubectl.text("delete", "node", "--ignore-not-found", "--wait=false", *gone)

    def _rooms(
        self,
        nodes: Mapping[str, ElasticNode],
        there: Mapping[str, agent.NodeSeen],
        found: Mapping[str, Mapping[str, str]],
    ) -> list[Room]:
        """Return idle nodes, those on their way, then those that may be requested."""
        some = next((decode_json(r["allocatable"], dict[str, str]) for r in found.values()), {})
        alike = {name: amount(some[name]) for name in _SHARED if name in some}
        idle = [n for n, seen in there.items() if seen.idle_since is not None and seen.fit]
        coming = [n for n, seen in there.items() if seen.state == "coming"]
        off = [name for name, node in nodes.items() if node.is_off]
        return [self._room(name, alike) for name in (*idle, *coming, *off)]

    def _room(self, name: str, alike: Mapping[str, Decimal]) -> Room:
        shape = self._shapes[name]
        devices = {resource: Decimal(number) for resource, number in shape.devices.items()}
        return Room(
            node=name,
            labels={**shape.marks["labels"], HOST: name, **_OF_ITS_SYSTEM},
            taints=tuple(shape.marks["taints"]),
            free={**alike, **devices},
        )

    def _set_aside(
        self,
        waiting: Sequence[WaitingPod],
        placing: Placed,
        nodes: Mapping[str, ElasticNode],
        now: float,
    ) -> None:
        """Mark pods that the scheduler doesn't place though an idle node has room for them.

        They wait for something that isn't known here: no node would help, one after the other.
        """
        created = {pod.id: pod.created for pod in waiting}
        for name, pods in placing.nodes.items():
            joined = nodes[name].power
            if joined is None or joined.state != "joined" or now - joined.at < UNPLACED_S:
                continue
            for pod in (one for one in pods if now - created[one] >= UNPLACED_S):
                namespace, _, own = pod.partition("/")
                self._kubectl.run(
                    *("annotate", "pod", own, f"--namespace={namespace}", f"{UNPLACED}={name}")
                )


_OF_ITS_SYSTEM = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


def _is_movable(pod: PodSeen) -> bool:
    """Return whether a pod is the cluster's own, and comes again elsewhere: it holds no node."""
    return pod.is_service and pod.namespace in _SYSTEM


def _jobs(
    waiting: Sequence[WaitingPod], placing: Placed, there: Mapping[str, agent.NodeSeen]
) -> Iterator[JobSeen]:
    """Yield each pod that waits for a node which isn't there yet."""
    known = {pod.id: pod for pod in waiting}
    for node, pods in placing.nodes.items():
        for pod in pods if there[node].state == "coming" else ():
            job = PendingJob(id=pod, eligible_since=known[pod].created, nodes=1)
            yield JobSeen(job=job, partition="", nodes=(node,))


@contextmanager
def _translated() -> Iterator[None]:
    """Raise the agent's errors for those of the API."""
    try:
        yield
    except (ApiSilent, OtherSilent) as error:
        raise SchedulerSilent(str(error)) from error
    except ApiRefused as error:
        raise SchedulerRefused(str(error)) from error
