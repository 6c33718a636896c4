"""Pools that a cloud's control plane grows, and what its autoscaler can't do for them."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.eks_groups import LONGEST_TAG, too_long
from ...diagnostics import PathTuple
from ...spec import KubernetesScheduler, Pool
from ..context import CheckContext
from ..registry import Finding, check

_PLANE: PathTuple = ("scheduler", "control_plane")
_GPU: PathTuple = ("scheduler", "gpu", "resource_claims")


@check("GC742", summary="A cloud's autoscaler can't grow a pool as it is bought.")
def elastic_pool_unsuited(context: CheckContext) -> Iterator[Finding]:
    """An elastic pool of EKS, GKE or AKS is bought on one option in one zone.

    Its autoscaler knows one node pool, and no order of options. What GKE queues (flex-start) has no
    node before a pod requests one: `count: {min: 0, max: 8}` (cloud.google.com/kubernetes-engine/
    docs/concepts/dws, November 2026). Under EKS it buys no capacity block, but uses one that was
    bought.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.control_plane == "self":
        return
    for name, pool in context.pools.items():
        if pool.role == "compute":
            yield from _as_bought(kubernetes, name, pool)


def _as_bought(kubernetes: KubernetesScheduler, name: str, pool: Pool) -> Iterator[Finding]:
    path, cloud = ("pools", name), kubernetes.control_plane
    flex = any("flex-start" in {one, getattr(one, "market", "")} for one in pool.market)
    if pool.is_elastic and (len(pool.market) > 1 or len(pool.zones) > 1):
        what = "market" if len(pool.market) > 1 else "zones"
        yield Finding(
            summary=f'pool "{name}" grows by one node pool of {cloud}, and '
            f"{what} names {len(getattr(pool, what))}",
            path=(*path, what),
            hint="keep one, or make a pool of each",
            relies_on=(_PLANE, path),
        )
    if flex and cloud == "gke" and not (pool.is_elastic and not pool.least):
        yield Finding(
            summary=f'pool "{name}" is queued for by GKE, and has nodes only while pods request '
            "them",
            path=(*path, "market"),
            hint=f"write count: {{min: 0, max: {pool.most or 1}}}",
            relies_on=(_PLANE, path),
        )
    buys = any(getattr(one, "buy_capacity_block", None) is not None for one in pool.market)
    if buys and cloud == "eks" and pool.is_elastic:
        yield Finding(
            summary=f'pool "{name}" grows on machines of a capacity block, and EKS\' autoscaler '
            "buys none",
            path=(*path, "market"),
            hint="buy it yourself and write capacity_block: cr-...; or write a count that is one "
            "number",
            relies_on=(_PLANE, path),
        )


@check("GC745", summary="EKS' autoscaler has no place, or can't know of a node before it is there.")
def eks_elastic_pool_unknown(context: CheckContext) -> Iterator[Finding]:
    """Under EKS elastic pools are sized by a pod of the cluster, the Cluster Autoscaler.

    It runs on a node that is always there, as CoreDNS does: one pool has `min` of 1 or more. Of a
    node that a pool would get it knows what the tags of its group say: so names of labels and
    taints are no longer than a tag's key holds, each taint's key occurs once, a group has at most
    50 tags (labels, taints, partitions, the spec's tags), and GPUs are counted, not claimed
    (`resource_claims`).
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.control_plane != "eks":
        return
    nodes = {name: pool for name, pool in context.pools.items() if pool.role == "compute"}
    elastic = {name: pool for name, pool in nodes.items() if pool.is_elastic}
    if elastic and not any(pool.least for pool in nodes.values()):
        name = next(iter(elastic))
        yield Finding(
            summary="no node is always there, and the autoscaler that makes the others runs on one",
            path=("pools", name, "count"),
            hint="add a pool for the cluster's own pods, {machine: m7i.4xlarge, count: 2, "
            "kubernetes: {system: true}}, or write min: 1",
            relies_on=(_PLANE, *(("pools", other) for other in nodes)),
        )
    for name, pool in elastic.items():
        yield from _hints(kubernetes, name, pool)


def _hints(kubernetes: KubernetesScheduler, name: str, pool: Pool) -> Iterator[Finding]:
    path: PathTuple = ("pools", name, "kubernetes")
    if long := too_long(pool):
        yield Finding(
            summary=f'pool "{name}": no tag of AWS holds {long[0]}, by which the autoscaler would '
            "know it",
            path=path,
            hint=f"shorten it: with k8s.io/cluster-autoscaler/node-template/label/ before it, it "
            f"has {LONGEST_TAG} characters at most",
            relies_on=(_PLANE, ("pools", name)),
        )
    keys = [one.key for one in (pool.kubernetes.taints if pool.kubernetes else ())]
    if twice := [key for key in keys if keys.count(key) > 1]:
        yield Finding(
            summary=f'pool "{name}": two taints have the key {twice[0]}, and the autoscaler knows '
            "of one",
            path=(*path, "taints"),
            hint="keep one of them, or give each a key of its own",
            relies_on=(_PLANE, ("pools", name)),
        )
    if kubernetes.gpu.resource_claims:
        yield Finding(
            summary=f'pool "{name}" grows under EKS, whose autoscaler can\'t know GPUs that are '
            "claimed of a node that isn't there",
            path=_GPU,
            hint=f"remove resource_claims, or write count: {pool.most}",
            relies_on=(_PLANE, _GPU, ("pools", name)),
        )
