"""What all clouds' plans have alike: sites, pools, disks and buckets as plain values (pure)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import msgspec

from ...inventory.hosts import pool_host_names
from ...schemas.catalog import Machine
from ...schemas.catalog.model.machine import Market
from ...schemas.cost.pools import quote
from ...schemas.derived.control_planes import managed_by
from ...schemas.derived.links import RouteTo
from ...schemas.derived.storage import is_on_volume, volume_gib
from ...schemas.spec import (
    CloudSite,
    ClusterSpec,
    FileService,
    KubernetesScheduler,
    LustreStorage,
    NfsStorage,
    NodeTaint,
    ObjectStorage,
    Pool,
    PoolRole,
)
from .names import Labels, Names, spec_hash

_GIB = 2**30


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all parts of a plan."""


class Keyed(Protocol):
    """A way to buy a machine: a market, mostly in a zone."""

    @property
    def key(self) -> str:
        """Its name, unique in the pool: spot-use1-az4."""
        ...


OfferT = TypeVar("OfferT", bound=Keyed)


class CloudPool(Plan, Generic[OfferT], frozen=True, kw_only=True):
    """Machines that are alike; each cloud adds its own."""

    name: str
    role: PoolRole
    machine: str
    """Machine type as the cloud calls it."""
    nodes: tuple[str, ...]
    """Names of the machines that are always there."""
    most: int
    """Machines at once, elastic ones with them."""
    elastic: bool
    disk_gib: int
    public: bool
    """Its machines have addresses outside; never those of compute pools."""
    gateway: bool = False
    """Its first host is the end of a tunnel, and takes packets that aren't its own."""
    tags: dict[str, str]
    offers: tuple[OfferT, ...]
    """In the order in which they are tried."""
    mixed: bool
    """Its machines may be bought by several of them."""

    def purchased(self, taken: Mapping[str, str]) -> dict[str, OfferT]:
        """Return node -> the offer that it is bought by, of the nodes that are made.

        `taken` has keys of offers; a node that it lacks is on the first, one with "" is not made.
        """
        first, by_key = self.offers[0], {offer.key: offer for offer in self.offers}
        keys = {node: taken.get(node, first.key) for node in self.nodes}
        return {node: by_key.get(key, first) for node, key in keys.items() if key}


PoolT = TypeVar("PoolT", bound="CloudPool[Any]")


class CloudPlan(Plan, Generic[PoolT], frozen=True, kw_only=True, dict=True):
    """All of a site; each cloud adds its own."""

    names: Names
    labels: Labels
    region: str
    pools: tuple[PoolT, ...]
    volumes: tuple[VolumePlan, ...]
    budget: BudgetPlan | None

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self.labels.cluster

    @property
    def site(self) -> str:
        """Name of the site."""
        return self.labels.site

    @cached_property
    def pools_by_name(self) -> dict[str, PoolT]:
        """The pools, for queries once per machine type."""
        return {pool.name: pool for pool in self.pools}

    def pool(self, name: str) -> PoolT:
        """Return a pool; raises KeyError."""
        return self.pools_by_name[name]

    @cached_property
    def fixed_nodes(self) -> frozenset[str]:
        """Names of the nodes that the spec lists; elastic ones are not among them."""
        return frozenset(node for pool in self.pools for node in pool.nodes)


SiteT = TypeVar("SiteT", bound=CloudSite)


def site_of(spec: ClusterSpec, name: str, kind: type[SiteT]) -> SiteT:
    """Return a site as the spec describes it.

    Raises:
        KeyError: there is no such site.
        TypeError: it is of another provider.
    """
    found = spec.sites[name]
    if not isinstance(found, kind):
        message = f'site "{name}" is of {found.provider}'
        raise TypeError(message)
    return found


def site_names(spec: ClusterSpec, site: str) -> Names:
    """Return what makes the names of a site's resources."""
    return Names(cluster=spec.name, site=site, cloud=spec.sites[site].provider)


def site_labels(spec: ClusterSpec, site: str) -> Labels:
    """Return what all resources of a cloud's site are marked with."""
    here = cast("CloudSite", spec.sites[site])
    return Labels(
        cluster=spec.name,
        site=site,
        spec_hash=spec_hash(spec),
        owner=spec.owner or "",
        extra={**spec.tags, **here.tags},
    )


def disk_gib(pool: Pool, default: int) -> int:
    """Return the size of a pool's boot disks in GiB."""
    return default if pool.disk is None else math.ceil(pool.disk.value / _GIB)


def data_names(
    plan: CloudPlan[Any],
    *,
    lustre: Iterable[str],
    buckets: Iterable[str],
    services: Iterable[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Return component -> the storage that it is made for.

    Args:
        plan: the site, which has the disks.
        lustre: storage that it makes file systems for.
        buckets: storage that it makes buckets for.
        services: storage that it makes file systems of its NFS service for.
    """
    made = {
        "lustre": lustre,
        "nfs": services,
        "volume": (v.storage for v in plan.volumes),
        "bucket": buckets,
    }
    return {plan.names(f"{kind}-{name}"): (name,) for kind, of in made.items() for name in of}


ValueT = TypeVar("ValueT")


def made_gateways(
    plan: CloudPlan[Any], routes: Iterable[RouteTo], made: Mapping[str, ValueT]
) -> dict[str, ValueT]:
    """Return network of another site -> the gateway's route target, where one is created.

    Args:
        plan: the site.
        routes: to networks of other sites, with the pools whose first host leads there.
        made: host -> its name in routes.
    """
    first = {pool.name: pool.nodes[0] for pool in plan.pools if pool.gateway and pool.nodes}
    return {
        route.network: made[first[route.pool]] for route in routes if first.get(route.pool) in made
    }


ACCOUNTS_SERVICE_ACCOUNT = "default"
"""Service account of an account's pods, in the namespace of its name: members make no others."""


def identities(kubernetes: KubernetesScheduler) -> tuple[tuple[str, str], ...]:
    """Return the accounts whose pods have an identity of the cloud, with that identity's name."""
    return tuple((name, one.name) for name, one in sorted(kubernetes.identities.items()))


def elastic_labels(spec: ClusterSpec, pool: str) -> dict[str, str]:
    """Return the labels that nodes of a pool of a cloud's control plane come with by themselves.

    Those that pods are placed by: partitions, and the spec's own.
    """
    pool_spec, partitions = spec.pools[pool], spec.scheduler.partitions
    requested = {} if pool_spec.kubernetes is None else dict(pool_spec.kubernetes.labels)
    among = [name for name, one in partitions.items() if pool in one.pools]
    if not partitions and pool_spec.runs_jobs:
        among = ["main"]
    return requested | {f"partition.gcluster.local/{name}": "true" for name in sorted(among)}


def elastic_taints(spec: ClusterSpec, pool: str) -> tuple[NodeTaint, ...]:
    """Return the spec's taints of a pool."""
    requested = spec.pools[pool].kubernetes
    return () if requested is None else tuple(requested.taints)


def managed_kubernetes(spec: ClusterSpec, here: CloudSite) -> KubernetesScheduler | None:
    """Return the spec's Kubernetes where a site's cloud runs its control plane; else None."""
    kubernetes, kind = spec.scheduler, managed_by(spec)
    if kind is None or kind != here.managed_kubernetes:
        return None
    return kubernetes if isinstance(kubernetes, KubernetesScheduler) else None


def priced(
    machine: Machine | None, market: Market, region: str, max_usd_per_hour: float | None = None
) -> tuple[float | None, bool]:
    """Return what a node costs on an option by the catalog, and whether that is only a bound.

    A spot node with a price limit costs at most that.
    """
    if max_usd_per_hour is not None:
        return max_usd_per_hour, True
    found = quote(machine, market, region)
    return None if found.price is None else found.price.usd_per_hour, found.is_bound


def architecture_of(machine: Machine | None) -> str:
    """Return what a machine type's processors are; of one that isn't known, what most are."""
    return "x86_64" if machine is None else machine.cpu.architecture


_HOURS_PER_MONTH = 730
_PAYS = {"aws": "account", "azure": "subscription", "gcp": "project", "oci": "compartment"}
"""Cloud -> the field of its sites with the billing account."""
ALARMS: tuple[tuple[Literal["actual", "forecast"], int], ...] = (
    ("actual", 80),
    ("actual", 100),
    ("forecast", 100),
)
"""Budget scope, and per cent of the ceiling at which the owner is notified, on every cloud."""


class BudgetPlan(Plan, frozen=True):
    """A ceiling that the cloud watches: it warns, and stops nothing."""

    usd_per_month: float
    email: str | None
    """Recipients in addition to those whom the cloud notifies by itself."""


def budget_plan(spec: ClusterSpec, site: str) -> BudgetPlan | None:
    """Return the alarm on the first site of a bill, for it watches the whole cluster there.

    A ceiling by the hour alone is a month of 730 hours.
    """
    budget = spec.budget
    if budget is None or site != _first_on_the_bill(spec, site):
        return None
    by_hour = budget.max_usd_per_hour
    most = budget.max_usd_per_month or (by_hour and by_hour * _HOURS_PER_MONTH)
    if not most:
        return None
    email = spec.owner if spec.owner and re.fullmatch(r"[^@\s]+@[^@\s]+", spec.owner) else None
    return BudgetPlan(usd_per_month=most, email=email)


def _first_on_the_bill(spec: ClusterSpec, site: str) -> str:
    def bill(name: str) -> tuple[str, object]:
        here = spec.sites[name]
        return here.provider, getattr(here, _PAYS.get(here.provider, ""), None)

    return next(name for name in spec.sites if bill(name) == bill(site))


class VolumePlan(Plan, frozen=True):
    """A disk to make and to attach to one host, for what it serves: it outlives the host."""

    storage: str
    """Of the spec."""
    pool: str
    host: str
    """The pool's first, which serves it."""
    gib: int
    number: int
    """Among those of its host, from 0."""


STORAGE_TAG = "gcluster-storage"
"""Key of a disk's tag with the storage that it holds; boot disks have none."""


def volume_plans(spec: ClusterSpec, site: str) -> tuple[VolumePlan, ...]:
    """Return the disks of a site, in the order of the spec's storage."""
    found: list[VolumePlan] = []
    for name, storage in spec.storage.items():
        if not isinstance(storage, NfsStorage) or not is_on_volume(spec, name):
            continue
        pool = storage.server or ""
        if spec.pools[pool].site == site:
            host = pool_host_names(pool, spec.pools[pool])[0]
            number = sum(plan.host == host for plan in found)
            gib = volume_gib(storage)
            found.append(VolumePlan(storage=name, pool=pool, host=host, gib=gib, number=number))
    return tuple(found)


ManagedStorage: TypeAlias = LustreStorage | FileService
"""A file system that a cloud runs: the cloud returns its mount parameters."""


def managed_storage(spec: ClusterSpec, site: str) -> dict[str, ManagedStorage]:
    """Return the file systems that the site's cloud runs, made by us or there already."""
    return {
        name: storage
        for name, storage in spec.storage.items()
        if storage.site == site
        and (
            isinstance(storage, FileService)
            or (isinstance(storage, LustreStorage) and storage.is_managed)
        )
    }


ServiceT = TypeVar("ServiceT", bound=FileService)


def made_services(
    spec: ClusterSpec, site: str, kind: type[ServiceT]
) -> Iterator[tuple[str, ServiceT]]:
    """Yield the file systems of one NFS service that a site makes."""
    for name, storage in spec.storage.items():
        if isinstance(storage, kind) and storage.site == site and storage.is_made:
            yield name, storage


class BucketPlan(Plan, frozen=True):
    """A bucket to make."""

    name: str
    """Of the storage in the spec."""
    bucket: str
    kms_key: str | None


class GrantPlan(Plan, frozen=True):
    """What nodes may do in a bucket."""

    bucket: str
    prefix: str
    """"" for the whole bucket."""
    write: bool


class StoredObjects(NamedTuple):
    """An object storage of the spec, its URL taken apart."""

    name: str
    storage: ObjectStorage
    bucket: str
    prefix: str


def made_lustre(spec: ClusterSpec, site: str) -> Iterator[tuple[str, LustreStorage]]:
    """Yield the file systems that a site makes; those that exist or that hosts serve are left."""
    for name, storage in spec.storage.items():
        if isinstance(storage, LustreStorage) and storage.site == site and storage.is_made:
            yield name, storage


def bucket_and_prefix(url: str) -> tuple[str, str]:
    """Return the parts of SCHEME://BUCKET/PREFIX."""
    bucket, _, prefix = url.partition("://")[2].partition("/")
    return bucket, prefix.strip("/")


def object_stores(spec: ClusterSpec, scheme: str) -> Iterator[StoredObjects]:
    """Yield the spec's object storage of one cloud, by what its URLs begin with: s3."""
    for name, storage in spec.storage.items():
        if isinstance(storage, ObjectStorage) and storage.bucket.startswith(f"{scheme}://"):
            yield StoredObjects(name, storage, *bucket_and_prefix(storage.bucket))


def makes(spec: ClusterSpec, site: str, storage: ObjectStorage) -> bool:
    """Return whether a site creates a bucket: without a site, the cloud's first one does."""
    cloud = spec.sites[site].provider
    first = next(name for name, here in spec.sites.items() if here.provider == cloud)
    return storage.create and (storage.site or first) == site


def bucket_plans(
    spec: ClusterSpec, site: str, scheme: str, kms_key: str | None
) -> tuple[BucketPlan, ...]:
    """Return the buckets that a site makes, each once."""
    made = {
        each.bucket: each.name
        for each in object_stores(spec, scheme)
        if makes(spec, site, each.storage)
    }
    return tuple(BucketPlan(name=name, bucket=b, kms_key=kms_key) for b, name in made.items())


def grant_plans(spec: ClusterSpec, site: str, scheme: str) -> tuple[GrantPlan, ...]:
    """Return what the site's nodes may do in buckets: those that they mount, and no other."""
    pools = {name for name, pool in spec.pools.items() if pool.site == site}
    return tuple(
        GrantPlan(bucket=bucket, prefix=prefix, write=not storage.read_only)
        for _, storage, bucket, prefix in object_stores(spec, scheme)
        if storage.site in {None, site} and (not storage.pools or pools & set(storage.pools))
    )
