"""Storage of the spec as file systems and buckets of AWS, and what nodes may read there (pure)."""

from __future__ import annotations

from typing import cast

from ....schemas.spec import AwsSite, ClusterSpec
from ....schemas.spec.storage import LustreStorage, ObjectStorage
from .types import BucketPlan, GrantPlan, LinkPlan, LustrePlan

_GIB = 2**30
_MB = 10**6
_SCHEME = "s3://"


def lustre_plans(spec: ClusterSpec, site: str) -> tuple[LustrePlan, ...]:
    """Return the file systems that a site makes; those that exist or that hosts serve are left."""
    return tuple(
        _lustre(name, storage, cast("AwsSite", spec.sites[site]))
        for name, storage in spec.storage.items()
        if isinstance(storage, LustreStorage) and storage.site == site and storage.is_made
    )


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


def bucket_plans(spec: ClusterSpec, site: str) -> tuple[BucketPlan, ...]:
    """Return the buckets to make: of a storage without a site, the first AWS site makes it."""
    first = next(name for name, here in spec.sites.items() if isinstance(here, AwsSite))
    here = cast("AwsSite", spec.sites[site])
    found = {
        name: BucketPlan(name=name, bucket=_bucket(storage.bucket)[0], kms_key=here.kms_key)
        for name, storage in spec.storage.items()
        if isinstance(storage, ObjectStorage)
        and storage.create
        and storage.bucket.startswith(_SCHEME)
        and (storage.site or first) == site
    }
    return tuple({plan.bucket: plan for plan in found.values()}.values())


def grant_plans(spec: ClusterSpec, site: str) -> tuple[GrantPlan, ...]:
    """Return what the site's nodes may do in buckets: those that they mount, and no other."""
    pools = {name for name, pool in spec.pools.items() if pool.site == site}
    grants = []
    for storage in spec.storage.values():
        if not isinstance(storage, ObjectStorage) or not storage.bucket.startswith(_SCHEME):
            continue
        if storage.site not in {None, site} or (storage.pools and not pools & set(storage.pools)):
            continue
        bucket, prefix = _bucket(storage.bucket)
        grants.append(GrantPlan(bucket=bucket, prefix=prefix, write=not storage.read_only))
    return tuple(grants)


def _bucket(url: str) -> tuple[str, str]:
    """Return bucket and prefix of an s3:// URL."""
    bucket, _, prefix = url.removeprefix(_SCHEME).partition("/")
    return bucket, prefix.strip("/")
