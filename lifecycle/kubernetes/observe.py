"""Nodes and pods from the API: which are ready, cordoned and why, and what runs where."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from ...inventory.compile.kubernetes_objects.nodes import AWAITED_DOMAIN, POOL, STARTUP_TAINT
from ...inventory.compile.kubernetes_objects.objects import (
    CLUSTER_LABEL,
    DOMAIN,
    FIELD_MANAGER,
    MANAGED_BY,
)
from ...schemas.derived.control_planes import CLAIMS_SINCE, MUTATING_POLICY_SINCE, has
from ...schemas.structure.decoding import decode_json
from .kubectl import Kubectl, rows
from .objects import DIGEST, ObjectKey, key_of

DRAIN_REASON = f"{DOMAIN}/drain-reason"
"""Annotation of a cordoned node: why, as Slurm's Reason. Role node_health writes it too."""
DRAINED_AT = f"{DOMAIN}/drained-at"
"""Annotation: since when, RFC 3339, UTC."""
UNFIT = "GclusterUnfit"
"""Condition of a node, by role node_health: True with what is wrong, False when it is fit."""
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-")
"""How resources begin that hold GPUs."""
SERVICE_OWNERS = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
"""What makes its pods again on another node, and never ends by itself."""
_OF_THE_NODE = frozenset({"DaemonSet", "Node"})
"""Owners of pods that belong to their node and stay with it."""


class NodeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the cluster."""

    name: str
    ready: bool
    not_ready: str = ""
    """What its kubelet or the control plane reports when it is not ready."""
    not_ready_since: str = ""
    cordoned: bool = False
    reason: str = ""
    """The recorded reason of its cordon; "" where there is none."""
    since: str = ""
    """Since when it is cordoned, RFC 3339; "" when not recorded."""
    unfit: str = ""
    """The result of its health check; "" when it is healthy or there is none."""
    awaits: tuple[str, ...] = ()
    """Resources that its device plugins have not offered yet; it takes no job's pod before."""

    @property
    def out(self) -> bool:
        """Whether no pod starts there."""
        return self.cordoned or not self.ready

    @property
    def why(self) -> str:
        """Return why it is out of service; "" when it is in service."""
        unexplained = "cordoned without a reason"
        if not self.ready:
            words = f"not ready: {self.not_ready or 'no report of its kubelet'}"
            return f"{unexplained}; {words}" if self.cordoned and not self.reason else words
        if not self.cordoned:
            return ""
        return self.reason or self.unfit or unexplained


class PodSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One pod that has not ended."""

    namespace: str
    name: str
    node: str = ""
    """"" until it is scheduled."""
    phase: str = ""
    owner: str = ""
    """Kind of its controller: Job, ReplicaSet, DaemonSet; "" for a bare pod."""
    owner_name: str = ""
    gpus: bool = False
    leaving: bool = False
    """It is deleted, and its kubelet has not ended it yet."""
    created: str = ""
    pending: str = ""
    """Why the scheduler has not placed it, or its containers don't start."""

    @property
    def id(self) -> str:
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_of_its_node(self) -> bool:
        """Whether it belongs to its node and ends with it."""
        return self.owner in _OF_THE_NODE

    @property
    def is_service(self) -> bool:
        """Whether it never ends by itself, and comes again elsewhere."""
        return self.owner in SERVICE_OWNERS


def see_nodes(kubectl: Kubectl) -> dict[str, NodeSeen]:
    """Return name -> node, of all nodes.

    Raises:
        ApiRefused, ApiSilent: see `Kubectl.text`.
    """
    return {row["name"]: node_seen(row) for row in rows(kubectl, "nodes", fields=NODE_FIELDS)}


def see_pods(kubectl: Kubectl, *options: str) -> list[PodSeen]:
    """Return the pods of all namespaces that have not ended.

    Raises:
        ApiRefused, ApiSilent: see `Kubectl.text`.
    """
    requested = ("pods", "--all-namespaces", _NOT_ENDED, *options)
    return [_pod(row) for row in rows(kubectl, *requested, fields=POD_FIELDS)]


def holding(pods: Iterable[PodSeen]) -> dict[str, list[PodSeen]]:
    """Return node -> the pods that hold it: all but those that belong to it."""
    found: dict[str, list[PodSeen]] = {}
    for pod in pods:
        if pod.node and not pod.is_of_its_node:
            found.setdefault(pod.node, []).append(pod)
    return found


_NOT_ENDED = "--field-selector=status.phase!=Succeeded,status.phase!=Failed"


def _of_condition(kind: str, field: str) -> str:
    return f'{{.status.conditions[?(@.type=="{kind}")].{field}}}'


def _annotation(name: str) -> str:
    return "{.metadata.annotations." + name.replace(".", "\\.") + "}"


_CONTROLLER = ".metadata.ownerReferences[?(@.controller==true)]"
NODE_FIELDS = {
    "name": "{.metadata.name}",
    "ready": _of_condition("Ready", "status"),
    "not_ready": _of_condition("Ready", "message"),
    "not_ready_since": _of_condition("Ready", "lastTransitionTime"),
    "cordoned": "{.spec.unschedulable}",
    "reason": _annotation(DRAIN_REASON),
    "since": _annotation(DRAINED_AT),
    "unfit": _of_condition(UNFIT, "status"),
    "finding": _of_condition(UNFIT, "message"),
    "starts": f'{{.spec.taints[?(@.key=="{STARTUP_TAINT}")].key}}',
    "labels": "{.metadata.labels}",
    "allocatable": "{.status.allocatable}",
    "conditions": "{range .status.conditions[*]}"
    '{.type}{"\\t"}{.status}{"\\t"}{.message}{"\\u001c"}{end}',
}
POD_FIELDS = {
    "namespace": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "node": "{.spec.nodeName}",
    "phase": "{.status.phase}",
    "owner": f"{{{_CONTROLLER}.kind}}",
    "owner_name": f"{{{_CONTROLLER}.name}}",
    "limits": "{.spec.containers[*].resources.limits}",
    "claims": "{.spec.resourceClaims[*].name}",
    "created": "{.metadata.creationTimestamp}",
    "deleted": "{.metadata.deletionTimestamp}",
    "unscheduled": _of_condition("PodScheduled", "message"),
    "waiting": "{.status.containerStatuses[*].state.waiting.reason}",
}


def node_seen(row: Mapping[str, str]) -> NodeSeen:
    """Read one row of `NODE_FIELDS`."""
    ready, cordoned = row["ready"] == "True", row["cordoned"] == "true"
    return NodeSeen(
        name=row["name"],
        ready=ready,
        not_ready="" if ready else row["not_ready"],
        not_ready_since="" if ready else row["not_ready_since"],
        cordoned=cordoned,
        reason=row["reason"] if cordoned else "",
        since=row["since"] if cordoned else "",
        unfit=row["finding"] if row["unfit"] == "True" else _problem(row.get("conditions", "")),
        awaits=_awaits(row) if row.get("starts") else (),
    )


def _problem(conditions: str) -> str:
    """Return the problem that a node's detector or kubelet reports; "" when there is none.

    EKS' agent, and Kubernetes' own detector under GKE and AKS, report problems as conditions: one
    named after readiness is False then, any other is True (kubernetes/ node-problem-detector,
    README; EKS User Guide, "Detect node health issues"; read 2026-11).
    """
    for line in conditions.split("\x1c"):
        kind, _, rest = line.strip().partition("\t")
        status, _, message = rest.partition("\t")
        if kind in {"", "Ready", UNFIT}:
            continue
        if status == ("False" if kind.endswith("Ready") else "True"):
            return f"{kind}: {message}" if message else kind
    return ""


def _awaits(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a starting node lacks, according to its own object."""
    labels, there = (
        decode_json(row[field] or "{}", dict[str, str]) for field in ("labels", "allocatable")
    )
    prefix = f"{AWAITED_DOMAIN}/"
    named = (name.removeprefix(prefix) for name in sorted(labels) if name.startswith(prefix))
    awaited = [name.replace("_", "/", 1) for name in named]
    return tuple(name for name in awaited if there.get(name, "0") == "0") or tuple(awaited)


def _pod(row: Mapping[str, str]) -> PodSeen:
    return PodSeen(
        namespace=row["namespace"],
        name=row["name"],
        node=row["node"],
        phase=row["phase"],
        owner=row["owner"],
        owner_name=row["owner_name"],
        gpus=bool(row["claims"]) or any(name in row["limits"] for name in GPU_RESOURCES),
        leaving=bool(row["deleted"]),
        created=row["created"],
        pending=row["unscheduled"] or row["waiting"],
    )


_ALWAYS = (
    "namespaces",
    "priorityclasses.scheduling.k8s.io",
    "runtimeclasses.node.k8s.io",
    "resourcequotas",
    "limitranges",
    "serviceaccounts",
    "networkpolicies.networking.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "storageclasses.storage.k8s.io",
    "persistentvolumes",
    "persistentvolumeclaims",
    "daemonsets.apps",
)
_SINCE = {
    "resourceclaimtemplates.resource.k8s.io": CLAIMS_SINCE,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": MUTATING_POLICY_SINCE,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": MUTATING_POLICY_SINCE,
}
"""Kinds that the first releases don't serve; a test holds both lists to what is compiled."""


class LiveNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the API server has it."""

    labels: dict[str, str]
    taints: tuple[dict[str, Any], ...]
    ready: bool


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """What is there."""

    objects: dict[ObjectKey, str]
    """Objects that carry this cluster's label -> what they were compiled to; "": unknown."""
    nodes: dict[str, LiveNode]


NOTHING = Live(objects={}, nodes={})


def kinds(release: str) -> list[str]:
    """Return the kinds that `up` applies and prunes, as kubectl names them."""
    return [*_ALWAYS, *(kind for kind, since in _SINCE.items() if has(release, since))]


def selector(cluster: str) -> str:
    """Return kubectl's option for the objects of a cluster that are gcluster's."""
    return f"--selector={CLUSTER_LABEL}={cluster},{MANAGED_BY}={FIELD_MANAGER}"


def read_live(kubectl: Kubectl, cluster: str, release: str, more: Collection[str] = ()) -> Live:
    """Query a cluster's objects and nodes: two calls.

    `more` are kinds that add-ons define, as far as the server has them.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: the API refused.
    """
    found = kubectl.get(",".join([*kinds(release), *more]), "--all-namespaces", selector(cluster))
    return Live(
        objects={
            key_of(one): one["metadata"].get("annotations", {}).get(DIGEST, "")
            for one in found["items"]
        },
        nodes={n["metadata"]["name"]: _node(n) for n in kubectl.get("nodes")["items"]},
    )


def is_ours(node: LiveNode) -> bool:
    """Whether gcluster let the node join: it came with the name of its pool."""
    return POOL in node.labels


def _node(answer: dict[str, Any]) -> LiveNode:
    conditions = {c["type"]: c["status"] for c in answer["status"].get("conditions", ())}
    return LiveNode(
        labels=answer["metadata"].get("labels", {}),
        taints=tuple(answer["spec"].get("taints", ())),
        ready=conditions.get("Ready") == "True",
    )
