"""Who runs the control plane of Kubernetes, and what its releases have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from ..catalog import Catalog
from ..diagnostics import PathTuple
from ..spec import (
    AwsSite,
    AzureSite,
    CloudSite,
    ClusterSpec,
    GcpSite,
    KubernetesScheduler,
    Maintenance,
    Pool,
    PoolKubernetes,
    Site,
)
from ..stack.pools import resolved_pools

Managed: TypeAlias = Literal["eks", "gke", "aks"]
API_PORT = 6443
"""Port of API servers that we run: kubeadm's default."""
_API = "api"
_SEVERAL = 2
BALANCED_PROVIDERS = ("aws", "gcp", "azure")
"""Providers whose stacks put an internal load balancer before several API servers."""


class GpuSharing(NamedTuple):
    """How pods share a pool's GPUs, and which key of the spec says so."""

    mig: str | None
    """Profile by which they are cut; None: they are whole."""
    mig_path: PathTuple
    time_slices: int
    """Pods that share one, or one of its slices, in turns."""
    time_slices_path: PathTuple


def gpu_sharing(kubernetes: KubernetesScheduler, name: str, pool: Pool) -> GpuSharing:
    """Return what a pool says itself, else what the scheduler says for all."""
    own, path = pool.kubernetes or PoolKubernetes(), ("pools", name, "kubernetes")
    alike = ("scheduler", "gpu")
    mig = kubernetes.gpu.mig if own.mig is None else own.mig
    slices = kubernetes.gpu.time_slices if own.time_slices is None else own.time_slices
    return GpuSharing(
        mig=None if mig == "none" else mig,
        mig_path=(*(alike if own.mig is None else path), "mig"),
        time_slices=slices,
        time_slices_path=(*(alike if own.time_slices is None else path), "time_slices"),
    )


def managed_by(spec: ClusterSpec) -> Managed | None:
    """Return the cloud's service that runs the control plane; None: controller pools do."""
    kubernetes = spec.scheduler
    if not isinstance(kubernetes, KubernetesScheduler) or kubernetes.control_plane == "self":
        return None
    return kubernetes.control_plane


def watched_by_roles(spec: ClusterSpec) -> bool:
    """Whether roles on nodes set up `monitoring`; else a chart under Kubernetes does."""
    kubernetes = spec.scheduler if isinstance(spec.scheduler, KubernetesScheduler) else None
    return roles_watch(kubernetes, spec.sites.values())


def roles_watch(kubernetes: KubernetesScheduler | None, sites: Iterable[Site]) -> bool:
    """Whether roles set up `monitoring`, as `watched_by_roles` says it of a whole spec.

    Nodes that are made on this machine have no registry that has the chart's images.
    """
    if kubernetes is None:
        return True
    return kubernetes.control_plane == "self" and all(site.is_made_here for site in sites)


def managed_pools(spec: ClusterSpec) -> frozenset[str]:
    """Return the pools whose machines are nodes that a cloud's service runs."""
    if managed_by(spec) is None:
        return frozenset()
    return frozenset(name for name, pool in spec.pools.items() if pool.role == "compute")


GKE_AT_ONCE = 20
"""Most nodes of a pool that GKE renews at once. From memory of docs.cloud.google.com/
kubernetes-engine/docs/concepts/node-pool-upgrade-strategies; the page could not be opened in
2026-11."""


def maintenance_window(kubernetes: KubernetesScheduler) -> Maintenance | None:
    """Return the window in which a cloud renews what it runs; None: whenever it likes."""
    return next(iter(kubernetes.maintenance.values()), None)


def balanced_site(spec: ClusterSpec) -> str | None:
    """Return the cloud site whose load balancer is in front of the API servers; None: none does."""
    kubernetes = spec.scheduler
    if not isinstance(kubernetes, KubernetesScheduler) or kubernetes.virtual_address is not None:
        return None
    pools = [pool for pool in spec.pools.values() if pool.role == "controller"]
    sites = {pool.site for pool in pools}
    if (
        managed_by(spec) is not None
        or len(sites) != 1
        or sum(p.most or 1 for p in pools) < _SEVERAL
    ):
        return None
    [name] = sites
    return name if spec.sites[name].provider in BALANCED_PROVIDERS else None


def api_name(spec: ClusterSpec, site: str) -> str | None:
    """Return the name of a cloud site's load balancer; None where its domain is not known."""
    domain = site_domain(spec, site)
    return f"{_API}.{domain}" if domain else None


def site_domain(spec: ClusterSpec, site: str) -> str | None:
    """Return the domain that a cloud site's names are made below, without a dot at the end.

    None: the site has none, or uses a zone that exists and says no domain.
    """
    here = spec.sites[site]
    if not isinstance(here, CloudSite):
        return None
    if here.dns is not None:
        domain = here.dns.domain
        if domain is None and isinstance(here, AzureSite):
            domain = here.dns.zone.rpartition("/")[2]
        return domain.rstrip(".") if domain else None
    if isinstance(here, AwsSite):
        return f"{spec.name}.{site}.internal"
    if isinstance(here, GcpSite):
        return f"{site}.{spec.name}.internal"
    return f"{spec.name}.internal" if isinstance(here, AzureSite) else None


def managed_release(spec: ClusterSpec, catalog: Catalog) -> str:
    """Return the minor release that a cloud's control plane is made with: "1.35"."""
    requested = release_of(spec.software.kubernetes)
    if requested is not None:
        return requested
    known = (pool.version("kubernetes") for pool in resolved_pools(spec, catalog).values())
    return release_of(next(filter(None, known), None)) or DEFAULT_RELEASE


def managed_version(spec: ClusterSpec, catalog: Catalog) -> str:
    """Return the version that GKE and AKS are requested: a patch where the spec names one.

    Of a release alone the cloud takes the newest patch (UpdateNodePoolRequest.node_version of GKE's
    API, "1.X.Y": the highest gke.N of it; ManagedClusterProperties.kubernetesVersion of AKS'; both
    read 2026-11). A node's image belongs to its version.
    """
    requested = spec.software.kubernetes or ""
    return requested if _PATCH.fullmatch(requested) else managed_release(spec, catalog)


def provisioning_class(kubernetes: KubernetesScheduler, pool: Pool) -> str | None:
    """Return the class of ProvisioningRequests by which Kueue requests all nodes of a job at once.

    None: it doesn't request those of this pool. GKE calls it flex-start with queued provisioning
    (cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest); EKS' autoscaler is the
    project's own (kubernetes/autoscaler, FAQ, "How can I use ProvisioningRequest to run batch
    workloads?"; both read 2026-11).
    """
    if not kubernetes.kueue or not pool.is_elastic:
        return None
    if kubernetes.control_plane == "eks":
        return "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    bought = {one if isinstance(one, str) else one.market for one in pool.market}
    flex = kubernetes.control_plane == "gke" and "flex-start" in bought
    return "queued-provisioning.gke.io" if flex else None


DEFAULT_RELEASE = "1.35"
"""Release of clusters whose spec says none and whose nodes no tested set fits (local nodes)."""
OLDEST = "1.31"
"""kubeadm's configuration v1beta4, which nodes are set up by, came with it (kubernetes.io, kubeadm
configuration v1beta4; read 2026-11)."""
CLAIMS_SINCE = "1.34"
"""DynamicResourceAllocation is stable (resource.k8s.io/v1) from here on. Source: Kubernetes
enhancement 4381, stable in 1.34 (kubernetes/enhancements, read 2026-11)."""
MUTATING_POLICY_SINCE = "1.36"
"""MutatingAdmissionPolicy is stable from here on. Source: Kubernetes enhancement 3962, kep.yaml:
beta in 1.34 and off by default, stable in 1.36 (kubernetes/enhancements, read 2026-11)."""

_PATCH = re.compile(r"\d+\.\d+\.\d+(-gke\.\d+)?")
_MINOR = re.compile(r"^v?(\d+)\.(\d+)")


def release_of(version: str | None) -> str | None:
    """Return the minor release of a version, "1.35" of "1.35.4"; None for "auto" and no version."""
    found = _MINOR.match(version or "")
    return f"{found[1]}.{found[2]}" if found else None


def has(release: str, since: str) -> bool:
    """Say whether a release is that one or a later one."""
    return _numbers(release) >= _numbers(since)


def without_channels(kubernetes: KubernetesScheduler, version: str | None) -> str | None:
    """Return why pods get no NVLink between nodes; None: they get channels of IMEX.

    NVIDIA's DRA driver wants resource claims. On GKE it needs nodes that are labelled and set up as
    Google documents for each machine, and no operator of NVIDIA's is installed there.

    Args:
        kubernetes: the spec's scheduler.
        version: of Kubernetes, as the spec has it.
    """
    release = release_of(version)
    if release is not None and not has(release, CLAIMS_SINCE):
        return f"Kubernetes {release} serves no resource claims"
    if kubernetes.control_plane == "gke":
        return "NVIDIA's DRA driver is not set up on GKE"
    return None


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]
