"""Which nodes the pods need that wait for want of one: pure.

As Kubernetes' own Cluster Autoscaler does: pods that the scheduler can't place are placed on nodes
as they would be. What counts are requests, node selectors, required node affinity, taints, and one
pod a node where pods keep others like themselves away (required anti-affinity by host name).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

_SUFFIXES: dict[str, Decimal] = {
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}
"""Suffix of a quantity -> what it multiplies (Kubernetes, apimachinery, resource.Quantity); n and u
are left out: nothing is requested in them."""
HOST = "kubernetes.io/hostname"
_EVICTING = frozenset({"NoSchedule", "NoExecute"})


def amount(quantity: str) -> Decimal:
    """Return a quantity of the API as a number: CPUs, bytes, devices."""
    for suffix in (quantity[-2:], quantity[-1:]):
        if suffix in _SUFFIXES and quantity != suffix:
            return Decimal(quantity.removesuffix(suffix)) * _SUFFIXES[suffix]
    return Decimal(quantity)


class WaitingPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that the scheduler can't place."""

    id: str
    """namespace/name."""
    created: float
    """Seconds since 1970."""
    priority: int = 0
    requests: dict[str, Decimal] = {}
    """Resource -> amount, the pod itself (`pods`) included."""
    selector: dict[str, str] = {}
    affinity: tuple[dict[str, Any], ...] = ()
    """Terms of its required node affinity: one of them has to hold; (): none is required."""
    tolerations: tuple[dict[str, Any], ...] = ()
    gang: str = ""
    """Owner of the pods that are placed all or none: those of an Indexed Job."""
    apart: str = ""
    """Owner of the pods of which a node has one at most."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is idle, on its way, or may be requested."""

    node: str
    labels: dict[str, str]
    taints: tuple[dict[str, Any], ...]
    free: dict[str, Decimal]
    """Resource -> amount that pods may have."""


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Where pods would be."""

    nodes: dict[str, tuple[str, ...]]
    """Node -> ids of pods that it would have; only nodes that are needed."""


def placed(pods: Iterable[WaitingPod], rooms: Sequence[Room]) -> Placed:
    """Place pods: of higher priority first, then the older ones; a gang whole or not at all.

    Args:
        pods: that wait.
        rooms: nodes in the order in which they are filled.
    """
    left = {room.node: dict(room.free) for room in rooms}
    apart: set[tuple[str, str]] = set()
    found: dict[str, list[str]] = {}
    for group in _groups(pods):
        spare = {node: dict(free) for node, free in left.items()}
        taken: list[tuple[WaitingPod, str]] = []
        for pod in group:
            others = apart | {(p.apart, node) for p, node in taken if p.apart}
            room = next((r for r in rooms if _fits(pod, r, spare[r.node], others)), None)
            if room is None:
                break
            for name, wanted in pod.requests.items():
                spare[room.node][name] -= wanted
            taken.append((pod, room.node))
        if len(taken) < len(group):
            continue
        left = spare
        for pod, node in taken:
            found.setdefault(node, []).append(pod.id)
            if pod.apart:
                apart.add((pod.apart, node))
    return Placed(nodes={node: tuple(ids) for node, ids in found.items()})


def _groups(pods: Iterable[WaitingPod]) -> list[list[WaitingPod]]:
    """Return pods that are placed together, in the order in which they are."""
    groups: dict[str, list[WaitingPod]] = {}
    for pod in sorted(pods, key=lambda one: (-one.priority, one.created, one.id)):
        groups.setdefault(pod.gang or f"pod {pod.id}", []).append(pod)
    return list(groups.values())


def _fits(
    pod: WaitingPod, room: Room, free: Mapping[str, Decimal], apart: set[tuple[str, str]]
) -> bool:
    return (
        all(free.get(name, Decimal(0)) >= wanted for name, wanted in pod.requests.items())
        and all(room.labels.get(key) == value for key, value in pod.selector.items())
        and (not pod.affinity or any(_term_holds(term, room) for term in pod.affinity))
        and all(_tolerated(taint, pod.tolerations) for taint in room.taints)
        and (pod.apart, room.node) not in apart
    )


def _term_holds(term: Mapping[str, Any], room: Room) -> bool:
    """Return whether a term of node affinity holds; an empty one never does (core/v1)."""
    rules = term.get("matchExpressions") or []
    fields = term.get("matchFields") or []
    if not rules and not fields:
        return False
    named = {"metadata.name": room.node}
    return all(_rule_holds(rule, room.labels) for rule in rules) and all(
        _rule_holds(rule, named) for rule in fields
    )


def _rule_holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or []
    operator = rule["operator"]
    if operator in {"Gt", "Lt"}:
        if value is None or not value.lstrip("-").isdecimal():
            return False
        difference = int(value) - int(values[0])
        return difference > 0 if operator == "Gt" else difference < 0
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(operator, False)


def _tolerated(taint: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a pod may run on a node with this taint (core/v1, Toleration)."""
    return taint["effect"] not in _EVICTING or any(
        one.get("effect") in {None, "", taint["effect"]}
        and (
            (one.get("operator") == "Exists" and one.get("key") in {None, "", taint["key"]})
            or (
                one.get("operator", "Equal") == "Equal"
                and one.get("key") == taint["key"]
                and one.get("value", "") == taint.get("value", "")
            )
        )
        for one in tolerations
    )
