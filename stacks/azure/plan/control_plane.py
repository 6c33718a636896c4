"""What Azure Kubernetes Service shall run of a cluster, as plain values (pure)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from ipaddress import ip_network
from typing import TYPE_CHECKING, Literal

import msgspec

from ....schemas.derived.control_planes import maintenance_window, managed_version
from ....schemas.derived.storage import own_disks
from ....schemas.spec import AzureSite, ClusterSpec, Maintenance, NodeTaint
from ...pulumi.names import Limit, shortened
from ...pulumi.plan import elastic_labels, elastic_taints, identities, managed_kubernetes

if TYPE_CHECKING:
    from ....schemas.catalog import Catalog
    from .types import PoolPlan

_DNS = 10
"""The address of the services' network that cluster DNS has, as elsewhere."""
_POOL_NAME = Limit(longest=12 + 8, compact=True)
"""Names of Linux pools have 12 small letters and digits, and no suffix is added to them
(learn.microsoft.com/azure/aks/create-node-pools, limitations, November 2026)."""


class AksWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A window that comes again each week."""

    date: str
    """Of the first one: 2027-01-15."""
    day: str
    """Friday."""
    start: str
    """UTC: 06:00."""
    hours: int


class AksPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A control plane of AKS; its node pools are ours to size and to place."""

    release: str
    pod_cidr: str
    service_cidr: str
    dns_address: str
    admin_cidrs: tuple[str, ...]
    """Networks that reach the API server from outside; none: it has no address there."""
    driver: Literal["Install", "None"]
    """Whether AKS brings the GPUs' driver; else the GPU operator does."""
    gpus: frozenset[str]
    """Pools whose nodes have GPUs."""
    labels: dict[str, dict[str, str]]
    """Elastic pool -> labels that its nodes come with."""
    taints: dict[str, tuple[NodeTaint, ...]]
    """Elastic pool -> taints that its nodes come with."""
    system: frozenset[str]
    """Pools whose nodes are for the cluster's own pods."""
    pools: frozenset[str]
    """Pools whose machines are nodes of it."""
    at_once: dict[str, int]
    """Pool -> nodes that are renewed at once."""
    drain_min: dict[str, int]
    """Pool -> minutes that a node's pods get to end."""
    window: AksWindow | None
    """When the cluster and nodes' images are renewed; None: it any time, they never."""
    striped: frozenset[str]
    """Pools whose nodes' own disks Azure Container Storage stripes volumes over."""
    identities: tuple[tuple[str, str], ...]
    """Accounts with the resource id of the managed identity that their pods are."""


def control_plane_plan(
    spec: ClusterSpec, site: AzureSite, pools: Iterable[PoolPlan], catalog: Catalog
) -> AksPlan | None:
    """Return the control plane of a site; None where AKS runs none there."""
    kubernetes = managed_kubernetes(spec, site)
    nodes = [pool for pool in pools if pool.role == "compute"]
    if kubernetes is None or not nodes:
        return None
    machines = {pool.name: catalog.machines.get(pool.machine) for pool in nodes}
    sizes = {pool.name: pool.most for pool in nodes}
    return AksPlan(
        release=managed_version(spec, catalog),
        pod_cidr=kubernetes.pod_cidr,
        service_cidr=kubernetes.service_cidr,
        dns_address=str(ip_network(kubernetes.service_cidr)[_DNS]),
        admin_cidrs=tuple(site.network.admin_cidrs),
        driver="None" if kubernetes.gpu.driver == "container" else "Install",
        gpus=frozenset(name for name, machine in machines.items() if machine and machine.gpu),
        labels={pool.name: elastic_labels(spec, pool.name) for pool in nodes if pool.elastic},
        taints={pool.name: elastic_taints(spec, pool.name) for pool in nodes if pool.elastic},
        system=frozenset(name for name in machines if not spec.pools[name].runs_jobs),
        pools=frozenset(machines),
        at_once={n: spec.pools[n].update.at_once(sizes[n]) for n in machines},
        drain_min={n: math.ceil(spec.pools[n].update.wait_s / 60) for n in machines},
        window=_window(maintenance_window(kubernetes)),
        striped=frozenset(own_disks(spec)) & frozenset(machines),
        identities=identities(kubernetes),
    )


def _window(window: Maintenance | None) -> AksWindow | None:
    if window is None:
        return None
    start = datetime.fromisoformat(window.start)
    return AksWindow(
        date=f"{start:%Y-%m-%d}",
        day=_DAYS[start.weekday()],
        start=f"{start:%H:%M}",
        hours=round(window.duration.value / 3600),
    )


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def pool_name(part: str) -> str:
    """Return what AKS calls a pool: a short name stays, another one ends in a hash of the whole."""
    plain = "".join(char for char in part if char.isalnum()).lower()
    room = _POOL_NAME.longest - 8
    return part if part == plain and len(part) <= room else shortened(part, _POOL_NAME)
