"""Nodes that a cloud's control plane runs are not repaired by us: the cloud does, or is told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.outcome import Exit, failure
from gcluster.schemas.control_planes import managed_by, managed_pools
from gcluster.schemas.hostlist import HostlistError, expand

if TYPE_CHECKING:
    from collections.abc import Collection

    from gcluster.schemas.spec import ClusterSpec

_INSTEAD = {
    "eks": "gcluster drain it, end its instance (aws ec2 terminate-instances), then gcluster up: "
    "the stack makes it anew",
    "gke": "gcluster drain it, delete its machine (gcloud compute instances delete): its node pool "
    "makes it anew; GKE does so itself for nodes that are not ready for ten minutes",
    "aks": "gcluster drain it, then az aks nodepool delete-machines and gcluster up: the pool gets "
    "its size again",
}


def refuse_managed(spec: ClusterSpec, words: Collection[str]) -> None:
    """Refuse to repair such nodes: their names are the cloud's, and no stack can replace one alone.

    Args:
        spec: the cluster.
        words: host ranges that were named; empty: all that waits, of which none is such a node.

    Raises:
        LifecycleError: GC1046 (exit code REFUSED).
    """
    managed, pools = managed_by(spec), managed_pools(spec)
    if managed is None:
        return
    own = [name for name in spec.pools if name not in pools]
    others = [word for word in words if not _is_ours(word, own)]
    if others:
        raise failure(
            "GC1046",
            f"{', '.join(others)}: nodes that {managed} runs are not repaired from here",
            hint=_INSTEAD[managed],
            exit_code=Exit.REFUSED,
        )


def _is_ours(word: str, pools: list[str]) -> bool:
    """Whether a host range names machines of pools that we run ourselves."""
    try:
        names = expand(word)
    except HostlistError:
        return True  # whoever reads it next says so
    return all(any(name.startswith(pool) for pool in pools) for name in names)
