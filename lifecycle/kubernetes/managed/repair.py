"""Which nodes of a cloud's control plane are repaired from here: EKS' instances, which are ours.

Node pools of GKE and AKS repair their nodes themselves, and no stack can replace one alone.
"""

from __future__ import annotations

from collections.abc import Collection

from ....schemas.derived.control_planes import managed_by, managed_pools
from ....schemas.derived.hostlist import HostlistError, expand
from ....schemas.spec import ClusterSpec
from ...outcome import Exit, LifecycleError, failure

_INSTEAD = {
    "gke": "GKE makes anew what is not ready for ten minutes. Sooner: gcluster drain it, then "
    "gcloud compute instances delete INSTANCE --zone ZONE (the node's name and zone): its node "
    "pool makes another",
    "aks": "AKS restarts and reimages what is not ready by itself. Sooner: gcluster drain it, then "
    "az aks nodepool delete-machines --resource-group GROUP --cluster-name CLUSTER --name POOL "
    "--machine-names MACHINE, and gcluster up: the pool gets its size again",
}
"""Their node pools mend nodes themselves (cloud.google.com/kubernetes-engine/docs/how-to/
node-auto-repair; learn.microsoft.com/azure/aks/node-auto-repair; November 2026)."""


def is_of_eks(spec: ClusterSpec, words: Collection[str]) -> bool:
    """Say whether nodes were named whose instances EKS' stack makes anew.

    Raises:
        LifecycleError: GC1046: others were named with them, or all are of GKE or AKS.
    """
    managed, pools = managed_by(spec), managed_pools(spec)
    own = [name for name in spec.pools if name not in pools]
    others = [word for word in words if managed is not None and not _is_ours(word, own)]
    if managed in _INSTEAD and others:
        raise _refusal(others, f"nodes that {managed} runs are not repaired from here", managed)
    if others and len(others) < len(words):
        raise _refusal(others, "nodes of EKS are repaired apart from machines of ours", "")
    return bool(others)


def _refusal(words: Collection[str], why: str, managed: str) -> LifecycleError:
    return failure(
        "GC1046",
        f"{', '.join(words)}: {why}",
        hint=_INSTEAD.get(managed, "name them in a gcluster repair of their own"),
        exit_code=Exit.REFUSED,
    )


def _is_ours(word: str, pools: list[str]) -> bool:
    """Whether a host range names machines of pools that we run ourselves."""
    try:
        names = expand(word)
    except HostlistError:
        return True  # whoever reads it next says so
    return all(any(name.startswith(pool) for pool in pools) for name in names)
