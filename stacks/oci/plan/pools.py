"""A pool of the spec as machines to launch: shape, RDMA network, markets, image (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from ....inventory.hosts import pool_host_names
from ....schemas.catalog import Catalog, Machine
from ....schemas.catalog.model.machine import Market
from ....schemas.spec import ClusterSpec, Option, Pool
from ....schemas.spec.sites import OciSite
from ....schemas.stack import resolved_software
from ...pulumi.names import short_hash
from ...pulumi.plan import disk_gib, site_of
from .facts import facts
from .types import ClusterPlan, Group, ImagePlan, OfferPlan, OptionPlan, PoolPlan, ShapePlan

_FLEXIBLE = re.compile(r"^(?P<shape>.+\.Flex)-(?P<ocpus>\d+)-(?P<memory>\d+)$")
_PLACEMENTS = {None, "cluster", "none", "spread"}


def pool_plan(spec: ClusterSpec, name: str, catalog: Catalog) -> PoolPlan:
    """Return the plan of one pool of an OCI site."""
    pool = spec.pools[name]
    site = site_of(spec, pool.site, OciSite)
    machine = machine_of(pool, catalog)
    group = _group(pool, machine)
    return PoolPlan(
        name=name,
        role=pool.role,
        machine=pool.machine or facts().service_machine,
        shape=_shape(pool.machine or facts().service_machine),
        group=group,
        rdma=group != "instances",
        spans_nodes=_spans_nodes(machine),
        nodes=tuple(pool_host_names(name, pool)),
        most=1 if pool.most is None else pool.most,
        elastic=pool.is_elastic,
        spread=pool.placement == "spread",
        image=_image(spec, name, site, catalog),
        disk_gib=disk_gib(pool, facts().root_disk_gib),
        public=pool.public_address and pool.role != "compute",
        tags=dict(pool.tags),
        offers=tuple(_offers(pool, site, group)),
        mixed=pool.mixed,
    )


def cluster_plans(spec: ClusterSpec, site: str, catalog: Catalog) -> tuple[ClusterPlan, ...]:
    """Return the compute clusters that a site's offers use: one for each availability domain.

    Pools of one domain share it: that is as far as RDMA reaches, and jobs may span them.
    """
    found: dict[str, ClusterPlan] = {}
    for name, pool in spec.pools.items():
        for offer in pool_plan(spec, name, catalog).offers if pool.site == site else ():
            if offer.cluster is not None:
                existing = _existing(pool)
                plan = ClusterPlan(key=offer.cluster, domain=offer.domain, existing=existing)
                found[plan.key] = plan
    return tuple(found[key] for key in sorted(found))


def machine_of(pool: Pool, catalog: Catalog) -> Machine | None:
    """Return the pool's machine type, the default one of controllers and logins; None: unknown."""
    return catalog.machines.get(pool.machine or facts().service_machine)


def _group(pool: Pool, machine: Machine | None) -> Group:
    """Return how the machines are made.

    A fixed pool is one cluster network: OCI places its nodes together, all or none. Nodes that come
    and go, and those of a compute cluster that exists, are launched into a compute cluster. An
    NVLink domain larger than a node is a GPU memory cluster.
    """
    has_rdma = any(
        nic.kind == "roce" and not nic.front_end for nic in (machine and machine.nics) or ()
    )
    if not has_rdma or pool.fabric == "ethernet" or pool.placement in {"none", "spread"}:
        return "instances"
    if _existing(pool) is not None or pool.is_elastic:
        return "compute-cluster"
    return "memory-cluster" if _spans_nodes(machine) else "cluster-network"


def _spans_nodes(machine: Machine | None) -> bool:
    """Return whether the NVLink domain is larger than a node."""
    if machine is None or machine.gpu is None or machine.nvlink is None:
        return False
    return machine.nvlink.domain_gpus > machine.gpu.count


def _existing(pool: Pool) -> str | None:
    return None if pool.placement in _PLACEMENTS else pool.placement


def _shape(machine: str) -> ShapePlan:
    """Return the shape: a flexible one is written with its OCPUs and GB, as in the catalog."""
    found = _FLEXIBLE.match(machine)
    if found is None:
        return ShapePlan(name=machine)
    size = (int(found["ocpus"]), int(found["memory"]))
    return ShapePlan(name=found["shape"], ocpus=size[0], memory_gib=size[1])


def _offers(pool: Pool, site: OciSite, group: Group) -> Iterator[OfferPlan]:
    """Yield options in the spec's order, each in all domains before the next."""
    for written in pool.market or ["on-demand"]:
        option = _option(written)
        for zone in pool.zones or [site.availability_domain or "1"]:
            domain = int(zone)
            cluster = None
            if group in {"compute-cluster", "memory-cluster"}:
                existing = _existing(pool)
                cluster = (
                    f"rdma-ad{domain}" if existing is None else f"existing-{short_hash(existing)}"
                )
            yield OfferPlan(
                key=f"{option.key}-ad{domain}", option=option, domain=domain, cluster=cluster
            )


def _option(written: str | Option) -> OptionPlan:
    """Return an option. OCI's spot has one price, half of the list's: there is no limit."""
    market = cast("Market", written if isinstance(written, str) else written.market)
    owned = None if isinstance(written, str) else written.reservation
    key = market if owned is None else f"{market}-{short_hash(owned)}"
    return OptionPlan(key=key, market=market, reservation=owned)


def _image(spec: ClusterSpec, name: str, site: OciSite, catalog: Catalog) -> ImagePlan:
    """Return the pool's image, else the site's, else the newest of the distribution."""
    pool, known = spec.pools[name], resolved_software(spec, name, catalog).distribution
    vendor = facts().images[known or facts().distribution]
    return ImagePlan(
        image=pool.image or site.image or "",
        user=site.ssh.user or vendor.user,
        operating_system=vendor.operating_system,
        version=vendor.version,
    )
