"""File systems and buckets of a Google Cloud site, as plain values (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....schemas.spec import ClusterSpec, FilestoreStorage, GcpSite, LustreStorage
from ...pulumi.plan import Plan, made_services, makes, object_stores
from .pools import PoolPlan

_GIB = 2**30
_MB = 1e6


class LustrePlan(Plan, frozen=True, kw_only=True):
    """A Managed Lustre instance to make."""

    name: str
    filesystem: str
    capacity_gib: int
    mb_per_s_per_tib: int | None
    """None: the spec has none, and validate has reported it."""
    zone: str
    kms_key: str | None


class FilestorePlan(Plan, frozen=True, kw_only=True):
    """A Filestore instance to make."""

    name: str
    tier: str
    """As the API spells it: BASIC_SSD."""
    capacity_gib: int
    protocol: str
    """NFS_V3 or NFS_V4_1."""
    location: str
    """A zone; of the regional tier the region."""
    kms_key: str | None
    clients: tuple[str, ...]
    """Networks that may mount it; (): all of its network."""


class BucketPlan(Plan, frozen=True, kw_only=True):
    """A bucket that the nodes see: to make, or only to be let into."""

    name: str
    """Of the storage."""
    bucket: str
    create: bool
    read_only: bool
    hierarchical: bool = False
    """Its folders are real ones."""


def lustre(
    spec: ClusterSpec, site_name: str, site: GcpSite, pools: Sequence[PoolPlan]
) -> Iterator[LustrePlan]:
    """Yield the file systems that the site makes."""
    for name, storage in spec.storage.items():
        if not isinstance(storage, LustreStorage) or storage.capacity is None:
            continue
        if _site_of(storage.site, spec) != site_name:
            continue
        throughput = storage.throughput
        yield LustrePlan(
            name=name,
            filesystem=storage.fsname or _filesystem(name),
            capacity_gib=int(storage.capacity.value // _GIB),
            mb_per_s_per_tib=None if throughput is None else round(throughput.value / _MB),
            zone=storage.zone or site.zone or _first_zone(pools, site),
            kms_key=storage.kms_key or site.kms_key,
        )


def filestore(
    spec: ClusterSpec, site_name: str, site: GcpSite, pools: Sequence[PoolPlan], cidr: str
) -> Iterator[FilestorePlan]:
    """Yield the Filestore instances that the site makes; `cidr` is of its nodes, "" unknown."""
    for name, storage in made_services(spec, site_name, FilestoreStorage):
        zone = storage.zone or site.zone or _first_zone(pools, site)
        yield FilestorePlan(
            name=name,
            tier=storage.tier.upper().replace("-", "_"),
            capacity_gib=0 if storage.capacity is None else int(storage.capacity.value // _GIB),
            protocol="NFS_V4_1" if storage.protocol == "nfs-v4.1" else "NFS_V3",
            location=site.region if storage.tier == "regional" else zone,
            kms_key=storage.kms_key or site.kms_key,
            clients=(cidr,) if cidr else (),
        )


def buckets(spec: ClusterSpec, site_name: str) -> Iterator[BucketPlan]:
    """Yield the buckets of Google's that nodes of the site see; one is made by one site only."""
    for name, storage, bucket, _ in object_stores(spec, "gs"):
        if storage.site in {None, site_name}:
            yield BucketPlan(
                name=name,
                bucket=bucket,
                create=makes(spec, site_name, storage),
                read_only=storage.read_only,
                hierarchical=storage.hierarchical_namespace,
            )


def _site_of(written: str | None, spec: ClusterSpec) -> str | None:
    """Return the site that makes a storage: the one it names, else the first of this cloud."""
    if written is not None:
        return written
    clouds = (name for name, site in spec.sites.items() if site.provider == "gcp")
    return next(clouds, None)


def _filesystem(name: str) -> str:
    """Return a Lustre name: 8 letters and digits."""
    return "".join(char for char in name if char.isalnum())[:8]


def _first_zone(pools: Sequence[PoolPlan], site: GcpSite) -> str:
    zones = (option.zone for pool in pools for option in pool.offers)
    return next(zones, f"{site.region}-a")
