"""What a cluster's nodes live on: the bundles that its last `up` brought them, as far as known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.bundle import BundleManifest, decode
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..state import Applied, StateStore, newest_applied

if TYPE_CHECKING:
    from ...inventory.compile.kubernetes import KubernetesAt
    from ..cluster import Cluster


def bundle_of(store: StateStore) -> BundleManifest | None:
    """Return the bundle of all packages and files; None: they come from the sources themselves."""
    applied = newest_applied(store)
    return None if applied is None or applied.bundle is None else decode(applied.bundle)


def kubernetes_of(
    spec: ClusterSpec, store: StateStore, bundle: BundleManifest | None
) -> KubernetesAt | None:
    """Return the bundle of Kubernetes; None: it isn't the scheduler, or comes from packages.

    Args:
        spec: the cluster.
        store: its state.
        bundle: what its nodes live on: then Kubernetes is in there.
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return None
    from ..kubernetes.source import (  # noqa: PLC0415  # only for Kubernetes
        bundled_at,
        kubernetes_at,
    )

    if bundle is not None and bundle.kubernetes is not None:
        return bundled_at(bundle.kubernetes)
    applied = newest_applied(store)
    return kubernetes_at(spec, None if applied is None else applied.kubernetes)


def applied_now(cluster: Cluster) -> Applied:
    """Return what is being applied: the spec, its catalog files and the bundles' manifests.

    A bundle of Kubernetes that is only planned is none yet: simulated nodes get nothing of it.
    """
    kubernetes = cluster.kubernetes
    return Applied(
        spec=cluster.spec_text,
        catalogs=dict(sorted(cluster.catalogs.items())),
        bundle=None if cluster.bundle is None else cluster.bundle.encode(),
        kubernetes=kubernetes.manifest.encode()
        if kubernetes and kubernetes.manifest.is_built
        else None,
    )
