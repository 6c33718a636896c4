"""A cluster that is installed from a bundle: checked before anything changes, then uploaded."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...inventory.hosts import ClusterInventory
from ...schemas.stack.bundle import BundleManifest
from ..cluster.cluster import Cluster
from ..cluster.outcome import Exit, failure
from ..cluster.progress import Reporter
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
