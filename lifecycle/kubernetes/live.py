"""What a cluster's API server has of gcluster's: objects by their labels, and nodes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from ...inventory.compile.kubernetes_objects.nodes import POOL
from ...inventory.compile.kubernetes_objects.objects import (
    CLUSTER_LABEL,
    FIELD_MANAGER,
    MANAGED_BY,
)
from ...schemas.derived.control_planes import CLAIMS_SINCE, MUTATING_POLICY_SINCE, has
from .kubectl import Kubectl
from .objects import DIGEST, ObjectKey, key_of

_ALWAYS = (
    "namespaces",
    "priorityclasses.scheduling.k8s.io",
    "resourcequotas",
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
    """Ask for the objects of a cluster and for its nodes: two calls.

    `more` are kinds that add-ons brought, as far as the server has them.

    Raises:
        ApiSilent: no API server answers.
        ApiRefused: it says no.
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


def _node(told: dict[str, Any]) -> LiveNode:
    conditions = {c["type"]: c["status"] for c in told["status"].get("conditions", ())}
    return LiveNode(
        labels=told["metadata"].get("labels", {}),
        taints=tuple(told["spec"].get("taints", ())),
        ready=conditions.get("Ready") == "True",
    )
