"""Nodes for jobs that wait: the Cluster Autoscaler sizes the elastic pools of EKS.

The cluster's groups are found by their tags; EKS' agent gives its rights to the service account of
this name (stacks/aws/program/eks_elastic.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from .....schemas.derived.control_planes import has
from .....schemas.derived.eks_groups import CLUSTER_TAG, ENABLED, SITE_TAG, eks_pools
from .....schemas.spec import AwsSite
from ...steps import Json
from ..facts import KubernetesFacts, tolerations

_NAME = "cluster-autoscaler"
ELASTIC = "gcluster.local/elastic"
"""Label of nodes that come and go: the autoscaler would keep the one that it is on."""


def autoscaler_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the values of the chart (kubernetes/autoscaler, chart 9.59.0, values.yaml).

    Pods can't reach the nodes' metadata, so the region is set.
    """
    spec = facts.spec
    [site] = {pool.site for pool in eks_pools(spec).values()}
    here = spec.sites[site]
    assert isinstance(here, AwsSite)  # noqa: S101  # EKS runs nodes nowhere else
    arguments: dict[str, Json] = {"expander": "least-waste", "v": 2}
    if facts.scheduler.kueue:
        arguments["enable-provisioning-requests"] = True
    return {
        "fullnameOverride": _NAME,
        "cloudProvider": "aws",
        "awsRegion": here.region,
        "image": {"tag": tag_for(facts.release, facts.catalog.addons[_NAME].tags)},
        "autoDiscovery": {
            "clusterName": spec.name,
            "tags": [ENABLED, f"{CLUSTER_TAG}={spec.name}", f"{SITE_TAG}={site}"],
        },
        "rbac": {"serviceAccount": {"name": _NAME}},
        "extraArgs": arguments,
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": ELASTIC, "operator": "DoesNotExist"}]}
                    ]
                }
            }
        },
        "tolerations": tolerations(facts, _fixed(facts)),
    }


def _fixed(facts: KubernetesFacts) -> list[str]:
    """Return the pools that have a node at all times."""
    pools = facts.spec.pools.items()
    return [name for name, pool in pools if pool.role == "compute" and pool.least]


def tag_for(release: str, tags: Mapping[str, str]) -> str:
    """Return the tag for a release, that of the last one before it where there is none."""
    known = sorted(tags, key=lambda one: [int(part) for part in one.split(".")])
    return tags[next((one for one in reversed(known) if has(release, one)), known[0])]
