"""What groups of elastic nodes under EKS are found and known by: tags that its autoscaler reads.

Names as in kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md at
cluster-autoscaler-1.35.2 (2026-07-22).
"""

from __future__ import annotations

from ..spec import ClusterSpec, Pool

ENABLED = "k8s.io/cluster-autoscaler/enabled"
"""Tag of groups that the autoscaler may size."""
OWNED = "k8s.io/cluster-autoscaler/{}"
"""Tag with the cluster's name, as EKS knows it."""
HINT = "k8s.io/cluster-autoscaler/node-template/"
"""What tags begin with that say how a node will be: label/NAME, taint/KEY, resources/NAME."""
LONGEST_TAG = 128
"""Characters of a tag's key (Auto Scaling API, CreateOrUpdateTags, Tag)."""
GPU_LABEL = "k8s.amazonaws.com/accelerator"
"""Label of nodes with NVIDIA's GPUs: until these are registered the autoscaler counts such a node
as one that is starting, and adds no second one for the same pod."""
CLUSTER_TAG = "gcluster-cluster"
SITE_TAG = "gcluster-site"


def eks_pools(spec: ClusterSpec) -> dict[str, Pool]:
    """Return the elastic pools whose nodes EKS' autoscaler makes; {} under another scheduler."""
    if getattr(spec.scheduler, "control_plane", "") != "eks":
        return {}
    return {n: p for n, p in spec.pools.items() if p.role == "compute" and p.is_elastic}


def too_long(pool: Pool) -> list[str]:
    """Return the labels and taints of a pool that make no tag: their names are too long (pure)."""
    requested = pool.kubernetes
    if requested is None:
        return []
    tags = {key: f"{HINT}label/{key}" for key in requested.labels}
    tags |= {one.key: f"{HINT}taint/{one.key}" for one in requested.taints}
    return sorted(key for key, tag in tags.items() if len(tag) > LONGEST_TAG)
