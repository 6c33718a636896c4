"""Where a cluster's nodes take Kubernetes from: a bundle; without one, local ones our own build.

Who only looks never builds. A plan of a bundle that isn't built is compiled without its checksums.
"""

from __future__ import annotations

from ...inventory.compile.kubernetes import KubernetesAt
from ...schemas.bundle import MANIFEST, NODE_FOLDER, KubernetesBundle, decode_kubernetes
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..outcome import Exit, LifecycleError
from ..progress import Reporter
from .bring import broken_files
from .build import built_folder, ensure_built, planned_bundle

BUILD = "make bundle-kubernetes"
"""Builds the bundle ahead of `up`, in a checkout."""
_BRING = "gcluster bundle --kubernetes modules --out DIR"
"""The same for who has no checkout: what it builds stays in the cache."""


def takes_own_build(spec: ClusterSpec) -> bool:
    """Whether the nodes of a spec take Kubernetes from this machine: all of them are made here."""
    made_here = all(site.is_made_here for site in spec.sites.values())
    return isinstance(spec.scheduler, KubernetesScheduler) and made_here


def kubernetes_at(spec: ClusterSpec, applied: bytes | None) -> KubernetesAt | None:
    """Return the bundle of a cluster's nodes as far as it is known; None: packages and a registry.

    Args:
        spec: the cluster.
        applied: manifest of the bundle that its nodes were last brought to; the cache may have
            been emptied since.
    """
    if not takes_own_build(spec):
        return None
    planned = planned_bundle()
    known = _built() or (None if applied is None else decode_kubernetes(applied))
    return _here(planned if known is None or known.key != planned.key else known)


def planned_at(spec: ClusterSpec) -> KubernetesAt | None:
    """Return the bundle as its recipe says it, whether it is built or not."""
    return _here(planned_bundle()) if takes_own_build(spec) else None


def ready_kubernetes(report: Reporter) -> KubernetesAt:
    """Return the bundle, built where it is missing, every file of it looked at.

    Raises:
        LifecycleError: it can't be built (GC939, GC912), or a file of it is missing or other than
            it was built (GC1000). Nothing was changed on any node.
    """
    folder, manifest = ensure_built(report)
    broken = broken_files(folder, manifest)
    if broken:
        found = [
            Diagnostic(
                code="GC1000",
                severity=Severity.ERROR,
                summary=f"{folder / path} is missing or isn't what was built",
                detail="nothing was changed on any node",
                hint=f"rm -r {folder}, then {BUILD} (or {_BRING})",
            )
            for path in broken
        ]
        raise LifecycleError(*found, exit_code=Exit.REFUSED)
    return _here(manifest)


def bundled_at(manifest: KubernetesBundle) -> KubernetesAt:
    """Return what a spec's bundle has: nodes find it beside their packages."""
    return KubernetesAt(manifest=manifest, root="")


def how_it_stands(at: KubernetesAt) -> str:
    """Say where a bundle is, or that `up` would build it, for a plan that a person reads."""
    version = f"Kubernetes {at.manifest.kubernetes}"
    if not at.root:
        return f"{version}: {at.manifest.size / 1e6:.0f} MB in the bundle that the nodes live on"
    if _built() is None:
        return f"{version}: to be built first, once, in minutes ({BUILD} does so ahead)"
    return f"{version}: {at.manifest.size / 1e6:.0f} MB in {built_folder()}"


def _built() -> KubernetesBundle | None:
    """Return the manifest of the bundle in the cache; None: there is none."""
    try:
        return decode_kubernetes((built_folder() / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None


def _here(manifest: KubernetesBundle) -> KubernetesAt:
    return KubernetesAt(manifest=manifest, root=f"file://{NODE_FOLDER}/{manifest.key}")
