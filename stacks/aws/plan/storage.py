"""Storage of the spec as file systems and buckets of AWS, and what nodes may read there (pure)."""

from __future__ import annotations

from ....schemas.spec import AwsSite, ClusterSpec, EfsStorage, LustreStorage, OpenZfsStorage
from ...pulumi.plan import made_lustre, made_services, site_of
from .types import EfsPlan, LinkPlan, LustrePlan, NetworkPlan, OpenZfsPlan

_GIB = 2**30
_MIB = 2**20
_MB = 10**6


def lustre_plans(spec: ClusterSpec, site: str) -> tuple[LustrePlan, ...]:
    """Return the file systems that a site makes; those that exist or that hosts serve are left."""
    here = site_of(spec, site, AwsSite)
    return tuple(_lustre(name, storage, here) for name, storage in made_lustre(spec, site))


def _lustre(name: str, storage: LustreStorage, site: AwsSite) -> LustrePlan:
    scratch = storage.deployment == "scratch-2"
    size = 0 if storage.capacity is None else int(storage.capacity.value // _GIB)
    rate = None if storage.throughput is None else int(storage.throughput.value // _MB)
    return LustrePlan(
        name=name,
        deployment="SCRATCH_2" if scratch else "PERSISTENT_2",
        capacity_gib=size,
        throughput=None if scratch else rate,
        efa=storage.efa,
        zone=storage.zone or site.zone_id,
        kms_key=None if scratch else storage.kms_key or site.kms_key,
        links=_links(storage),
    )


def _links(storage: LustreStorage) -> tuple[LinkPlan, ...]:
    """Return the links to buckets: one for the whole tree, or /import and /export apart.

    FSx takes the root of a file system for one link only (FSx for Lustre User Guide, "Linking your
    file system to an Amazon S3 bucket").
    """
    reads, writes = storage.import_from, storage.export_to
    if reads is not None and writes is not None and reads != writes:
        return (
            LinkPlan(what="import", url=reads, path="/import", imports=True, exports=False),
            LinkPlan(what="export", url=writes, path="/export", imports=False, exports=True),
        )
    url = reads or writes
    if url is None:
        return ()
    return (
        LinkPlan(
            what="bucket",
            url=url,
            path="/",
            imports=reads is not None,
            exports=writes is not None,
        ),
    )


def efs_plans(spec: ClusterSpec, site: str, network: NetworkPlan) -> tuple[EfsPlan, ...]:
    """Return the file systems of EFS that a site makes, with a mount target in each zone.

    EFS takes one mount target for each zone (CreateMountTarget), so that there is none for the
    public subnet, which is in the zone of a private one.
    """
    here = site_of(spec, site, AwsSite)
    zones = tuple(subnet.zone for subnet in network.compute if subnet.zone is not None)
    known = bool(zones) and len(zones) == len(network.compute)
    return tuple(
        EfsPlan(
            name=name,
            throughput_mode=storage.throughput_mode,
            mibps=None if storage.throughput is None else storage.throughput.value / _MIB,
            performance_mode="maxIO" if storage.performance_mode == "max-io" else "generalPurpose",
            kms_key=storage.kms_key or here.kms_key,
            zones=zones if known else (),
            tls=storage.tls,
        )
        for name, storage in made_services(spec, site, EfsStorage)
    )


def openzfs_plans(spec: ClusterSpec, site: str, network: NetworkPlan) -> tuple[OpenZfsPlan, ...]:
    """Return the file systems of FSx for OpenZFS that a site makes."""
    here = site_of(spec, site, AwsSite)
    return tuple(
        OpenZfsPlan(
            name=name,
            deployment=storage.deployment.upper().replace("-", "_"),
            capacity_gib=0 if storage.capacity is None else int(storage.capacity.value // _GIB),
            throughput=0 if storage.throughput is None else int(storage.throughput.value // _MB),
            zone=storage.zone or here.zone_id,
            compression=storage.compression.upper(),
            kms_key=storage.kms_key or here.kms_key,
            clients=(network.cidr,) if network.cidr else (),
        )
        for name, storage in made_services(spec, site, OpenZfsStorage)
    )
