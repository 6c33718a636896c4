"""What Google Kubernetes Engine shall run of a cluster, as plain values (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Literal

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.derived.control_planes import (
    GKE_AT_ONCE,
    gpu_sharing,
    maintenance_window,
    managed_version,
    provisioning_class,
)
from ....schemas.derived.storage import own_disks
from ....schemas.spec import ClusterSpec, GcpSite, Maintenance, NodeTaint
from ...pulumi.plan import elastic_labels, elastic_taints, identities, managed_kubernetes
from .facts import facts
from .pools import PoolPlan


class GkeGpuPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs of a pool's nodes, in GKE's form."""

    accelerator: str
    count: int
    partition: str | None
    """MIG profile of all: 1g.10gb."""
    clients: int
    """Pods that share one in turns."""


class GkePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A control plane of GKE (Standard); its node pools are ours to size and to place."""

    release: str
    pod_cidr: str
    service_cidr: str
    admin_cidrs: tuple[str, ...]
    """Networks that reach the API server from outside; none: it has no address there."""
    driver: Literal["host", "container"]
    """Who brings the GPUs' driver: GKE onto its image, or the GPU operator."""
    gpus: dict[str, GkeGpuPlan]
    """Pool -> its nodes' GPUs; pools without any are not here."""
    labels: dict[str, dict[str, str]]
    """Elastic pool -> labels that its nodes come with."""
    taints: dict[str, tuple[NodeTaint, ...]]
    """Elastic pool -> taints that its nodes come with."""
    pools: frozenset[str]
    """Pools whose machines are nodes of it."""
    queued: frozenset[str]
    """Pools whose nodes come by Kueue's ProvisioningRequests alone."""
    at_once: dict[str, int]
    """Pool -> nodes that are renewed at once."""
    window: tuple[str, str, str] | None
    """First start and end in UTC, and how they come again (RFC 3339, RFC 5545); None: any time."""
    local_ssds: dict[str, int]
    """Pool -> local SSDs of a node, where images and pods' data lie on them."""
    identities: tuple[tuple[str, str], ...]
    """Accounts with the e-mail of the service account that their pods are."""


def control_plane_plan(
    spec: ClusterSpec, site: GcpSite, pools: Iterable[PoolPlan], catalog: Catalog
) -> GkePlan | None:
    """Return the control plane of a site; None where GKE runs none there."""
    kubernetes = managed_kubernetes(spec, site)
    nodes = [pool for pool in pools if pool.role == "compute"]
    if kubernetes is None or not nodes:
        return None
    gpus = {}
    for pool in nodes:
        machine = catalog.machines.get(pool.machine)
        gpu = None if machine is None else machine.gpu
        if gpu is not None and gpu.gke_accelerator is not None:  # GC740 where that isn't known
            sharing = gpu_sharing(kubernetes, pool.name, spec.pools[pool.name])
            gpus[pool.name] = GkeGpuPlan(
                accelerator=gpu.gke_accelerator,
                count=gpu.count,
                partition=None if sharing.mig is None else sharing.mig.removeprefix("all-"),
                clients=sharing.time_slices,
            )
    return GkePlan(
        release=managed_version(spec, catalog),
        pod_cidr=kubernetes.pod_cidr,
        service_cidr=_services(kubernetes.service_cidr),
        admin_cidrs=tuple(site.network.admin_cidrs),
        driver=kubernetes.gpu.driver,
        gpus=gpus,
        labels={pool.name: elastic_labels(spec, pool.name) for pool in nodes if pool.elastic},
        taints={pool.name: elastic_taints(spec, pool.name) for pool in nodes if pool.elastic},
        pools=frozenset(pool.name for pool in nodes),
        queued=frozenset(
            pool.name for pool in nodes if provisioning_class(kubernetes, spec.pools[pool.name])
        ),
        at_once={
            p.name: min(spec.pools[p.name].update.at_once(p.most), GKE_AT_ONCE) for p in nodes
        },
        window=_window(maintenance_window(kubernetes)),
        local_ssds=_local_ssds(spec, nodes, catalog),
        identities=identities(kubernetes),
    )


_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def _window(window: Maintenance | None) -> tuple[str, str, str] | None:
    if window is None:
        return None
    start = datetime.fromisoformat(window.start)
    end = start + timedelta(seconds=window.duration.value)
    weekly = f"FREQ=WEEKLY;BYDAY={_DAYS[start.weekday()]}"
    recurrence = "FREQ=DAILY" if window.every == "day" else weekly
    return f"{start:%Y-%m-%dT%H:%M:%SZ}", f"{end:%Y-%m-%dT%H:%M:%SZ}", recurrence


_SSD_GB = 375 * 2**30 / 1e9
"""Of one local SSD (Compute Engine, "About Local SSD disks"): a3-ultragpu-8g has 32 of them."""


def _local_ssds(spec: ClusterSpec, nodes: list[PoolPlan], catalog: Catalog) -> dict[str, int]:
    """Return pool -> local SSDs of a node, for the pools whose disks the spec requests."""
    requested = own_disks(spec)
    known = {pool.name: catalog.machines.get(pool.machine) for pool in nodes}
    return {
        name: round(machine.nvme_gb / _SSD_GB)
        for name, machine in known.items()
        if name in requested and machine is not None and machine.nvme_gb
    }


def _services(cidr: str) -> str:
    """Return the services' network; of one that is larger than GKE takes, the first part."""
    whole, longest = ip_network(cidr), facts().gke_service_prefix
    if whole.prefixlen >= longest:
        return cidr
    return str(next(whole.subnets(new_prefix=longest)))
