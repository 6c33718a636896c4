"""Nodes, pods and requests of nodes from the API's answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec

from .....inventory.compile.kubernetes_objects.objects import DOMAIN
from .....schemas.structure.decoding import decode_json
from ....kubernetes.observe import NODE_FIELDS
from .demand import HOST, WaitingPod, amount

IDLE_SINCE = f"{DOMAIN}/idle-since"
"""Annotation of an elastic node without pods: since when, in seconds since 1970."""
UNPLACED = f"{DOMAIN}/unplaced-by"
"""Annotation of a pod that the scheduler doesn't place on a node which has room for it: the node.
No node is requested for such a pod."""
MESSAGE = f"{DOMAIN}/burst"
"""Annotation of a pod: why its nodes don't come."""

PowerState: TypeAlias = Literal["requested", "joined", "draining", "released", "down"]
"""requested: a pod needs it. joined: it has taken pods. draining: cordoned, for it was idle.
released: its machine may go. down: it won't come, or has failed."""


class Power(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is recorded of an elastic node in the cluster's API; what has no record is off."""

    state: PowerState
    at: float
    """Since when, in seconds since 1970."""
    reason: str = ""


ELASTIC_NODE_FIELDS = {
    **NODE_FIELDS,
    "taints": "{.spec.taints}",
    "idle": "{.metadata.annotations." + IDLE_SINCE.replace(".", "\\.") + "}",
}
WAITING_FIELDS = {
    "namespace": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "created": "{.metadata.creationTimestamp}",
    "deleted": "{.metadata.deletionTimestamp}",
    "index": "{.metadata.labels.batch\\.kubernetes\\.io/job-completion-index}",
    "owner": "{.metadata.ownerReferences[?(@.controller==true)].uid}",
    "unplaced": "{.metadata.annotations." + UNPLACED.replace(".", "\\.") + "}",
    "nominated": "{.status.nominatedNodeName}",
    "reason": '{.status.conditions[?(@.type=="PodScheduled")].reason}',
    "spec": "{.spec}",
}


def seconds(time: str) -> float:
    """Return a time of the API in seconds since 1970; "": 0."""
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def waiting_pods(found: list[dict[str, str]]) -> list[WaitingPod]:
    """Return the pods that need a node more.

    Left out are those that wait for something else: for their gates, for pods that they preempt,
    for other pods or devices that they claim, which nothing is known of before a node is there.
    """
    return list(_waiting(found))


def _waiting(found: list[dict[str, str]]) -> Iterator[WaitingPod]:
    for row in found:
        if row["reason"] != "Unschedulable" or row["deleted"] or row["nominated"]:
            continue
        spec: dict[str, Any] = decode_json(row["spec"], dict[str, Any])
        affinity = spec.get("affinity") or {}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        joins_others = affinity.get("podAffinity", {}).get(required)
        if row["unplaced"] or spec.get("resourceClaims") or joins_others:
            continue
        terms = affinity.get("nodeAffinity", {}).get(required, {}).get("nodeSelectorTerms", ())
        keeps_away = affinity.get("podAntiAffinity", {}).get(required, ())
        yield WaitingPod(
            id=f"{row['namespace']}/{row['name']}",
            created=seconds(row["created"]),
            priority=int(spec.get("priority") or 0),
            requests=_requests(spec),
            selector=spec.get("nodeSelector") or {},
            affinity=tuple(terms),
            tolerations=tuple(spec.get("tolerations") or ()),
            gang=row["owner"] if row["index"] else "",
            apart=row["owner"] if any(one.get("topologyKey") == HOST for one in keeps_away) else "",
        )


def _requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return what a pod occupies: its containers together, or the one that starts before them."""
    total: dict[str, Decimal] = {"pods": Decimal(1)}
    for container in spec.get("containers", ()):
        for name, quantity in _of(container).items():
            total[name] = total.get(name, Decimal(0)) + quantity
    for container in spec.get("initContainers", ()):
        stays = container.get("restartPolicy") == "Always"
        for name, quantity in _of(container).items():
            before = total.get(name, Decimal(0))
            total[name] = before + quantity if stays else max(before, quantity)
    for name, quantity in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Decimal(0)) + amount(quantity)
    return total


def _of(container: Mapping[str, Any]) -> dict[str, Decimal]:
    requested = container.get("resources", {}).get("requests") or {}
    return {name: amount(quantity) for name, quantity in requested.items()}
