"""The labels of every object of a cluster, by which it is found again."""

from __future__ import annotations

from ..provider import SiteContext

CLUSTER = "gcluster.cluster"
ID = "gcluster.id"
SITE = "gcluster.site"
KIND = "gcluster.kind"
"""node, builder, network or volume."""
NODE = "gcluster.node"
POOL = "gcluster.pool"
ROLE = "gcluster.role"
SCHEDULER = "gcluster.scheduler"
"""kubernetes: the container was started as a node of Kubernetes is; "" else."""
MACHINE = "gcluster.machine"
ADDRESS = "gcluster.address"
IMAGE = "gcluster.spec-image"
"""Key of the image the node was made from."""
TOKEN = "gcluster.token"  # noqa: S105  # an idempotency token, not a secret
"""Ledger intent that the object was made for."""
MOUNTS = "gcluster.mounts"
"""What the node mounts of the spec's storage (`volumes.mounts_text`)."""
STORAGE = "gcluster.storage"
"""Storage that a volume simulates."""
ELASTIC = "gcluster.elastic"
"""Token of the `grow` that made the node; "" for nodes of the graph."""


def owner(context: SiteContext) -> dict[str, str]:
    """Return the labels by which this cluster's objects on this site differ from all others."""
    return {CLUSTER: context.spec.name, ID: context.cluster_id, SITE: context.site}


def flags(labels: dict[str, str]) -> list[str]:
    """Return the flags that put labels on a new object."""
    return [f"--label={key}={value}" for key, value in labels.items()]


def blank() -> list[str]:
    """Return the `commit` flags that keep a builder's labels from the nodes made of its image."""
    made = (CLUSTER, ID, SITE, KIND, NODE, POOL, ROLE, SCHEDULER, MACHINE, ADDRESS, MOUNTS)
    keys = (*made, IMAGE, TOKEN, ELASTIC)
    return [f"--change=LABEL {key}=" for key in keys]
