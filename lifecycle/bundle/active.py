"""A cluster that is installed from a bundle: checked before anything changes, then uploaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ...schemas.stack.bundle import BundleManifest, decode
from ..cluster.outcome import Exit, failure
from ..cluster.progress import Reporter
from ..state import Applied, StateStore, newest_applied

if TYPE_CHECKING:
    from ...inventory.compile.kubernetes import KubernetesAt
    from ..cluster.cluster import Cluster
    from ..nodes.ssh import SshSession


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The bundle that `up` was given."""

    folder: Path | None
    """None: nodes take everything from the sources themselves again."""
    trusted: str | None = None
    """Fingerprint of the one key that may have signed it."""


def live_on(cluster: Cluster, bundle: Bundle) -> None:
    """Use a bundle as the cluster's software source, if it is complete, trusted and sufficient.

    Nothing is written or contacted.

    Raises:
        LifecycleError: GC937, GC938 or GC956, one finding for each problem.
    """
    from .check import (  # noqa: PLC0415  # Ansible takes a second
        check_bundle,
        refuse_incomplete,
    )

    if bundle.folder is None:
        _set_active(cluster, None)
        return
    before = cluster.bundle
    manifest = check_bundle(bundle.folder, bundle.trusted)
    other = before is not None and before.key_fingerprint != manifest.key_fingerprint
    if before is not None and other and bundle.trusted is None:
        raise failure(
            "GC956",
            f"{bundle.folder} is signed by {manifest.key_fingerprint}, and this cluster's "
            f"bundles by {before.key_fingerprint}",
            hint=f"if its maker has a new key: --bundle-key {manifest.key_fingerprint}",
            exit_code=Exit.REFUSED,
        )
    refuse_incomplete(manifest, cluster.spec, cluster.catalog, command_for(cluster, bundle.folder))
    _set_active(cluster, manifest)


def command_for(cluster: Cluster, folder: Path | None) -> str:
    """Return the command that makes a cluster's bundle whole."""
    return f"gcluster bundle {cluster.spec_path} --out {folder or 'DIR'}"


def _set_active(cluster: Cluster, manifest: BundleManifest | None) -> None:
    """Set what the cluster is installed from; Kubernetes comes from there too."""
    cluster.__dict__["bundle"] = manifest
    cluster.__dict__.pop("kubernetes", None)


def bring(
    cluster: Cluster,
    bundle: Bundle,
    hosts: ClusterInventory,
    session: SshSession,
    report: Reporter,
) -> None:
    """Bring the bundle to the controllers, where the other nodes take it from."""
    from .mirror import push_bundle  # noqa: PLC0415

    if bundle.folder is not None and cluster.bundle is not None:
        controllers = [h for h in hosts.with_role("controller") if h.connection == "ssh"]
        push_bundle(bundle.folder, cluster.bundle, controllers, session, report)


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
    from ..kubernetes.release.source import bundled_at, kubernetes_at  # noqa: PLC0415  # only for Kubernetes

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
