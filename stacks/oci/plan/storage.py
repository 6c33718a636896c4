"""Storage of the spec as file systems and buckets of OCI, and what nodes may read there (pure)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import cast

from ....schemas.spec import ClusterSpec
from ....schemas.spec.sites import OciSite
from ....schemas.spec.storage import LustreStorage, ObjectStorage
from .types import BucketPlan, GrantPlan, LinkPlan, LustrePlan

_GIB = 2**30
_MB = 10**6
_SCHEME = "oci://"
_LONGEST_FSNAME = 8
"""Characters of a Lustre file system's name (CreateLustreFileSystem)."""
_SLOWEST = 125
"""MB/s for each TB of the smallest tier: where the spec says none."""


def lustre_plans(spec: ClusterSpec, site: str) -> tuple[LustrePlan, ...]:
    """Return the file systems that a site makes; those that exist or that hosts serve are left."""
    here = cast("OciSite", spec.sites[site])
    return tuple(
        _lustre(name, storage, here)
        for name, storage in spec.storage.items()
        if isinstance(storage, LustreStorage) and storage.site == site and storage.is_made
    )


def _lustre(name: str, storage: LustreStorage, site: OciSite) -> LustrePlan:
    rate = _SLOWEST if storage.throughput is None else int(storage.throughput.value // _MB)
    return LustrePlan(
        name=name,
        fsname=storage.fsname or _fsname(name),
        capacity_gb=0 if storage.capacity is None else int(storage.capacity.value // _GIB),
        tier=f"MBPS_PER_TB_{rate}",
        domain=int(storage.zone or site.availability_domain or "1"),
        kms_key=storage.kms_key or site.kms_key,
        links=tuple(_links(storage)),
    )


def _fsname(name: str) -> str:
    """Return a name that Lustre takes: the storage's own, or its start and a hash of it."""
    plain = "".join(char for char in name if char.isalnum())
    if len(plain) <= _LONGEST_FSNAME:
        return plain
    return plain[:4] + hashlib.sha256(name.encode()).hexdigest()[:4]


def _links(storage: LustreStorage) -> Iterator[LinkPlan]:
    """Yield a link for each bucket: one of both ways where import and export are the same."""
    wanted = {"import": storage.import_from, "export": storage.export_to}
    if wanted["import"] == wanted["export"]:
        wanted = {"bucket": storage.import_from}
    for what, url in wanted.items():
        if url is not None:
            bucket, prefix = _parts(url)
            path = "/" if None in wanted.values() or len(wanted) == 1 else f"/{what}"
            yield LinkPlan(
                what=what, bucket=bucket, prefix=prefix, path=path, imports=what != "export"
            )


def bucket_plans(spec: ClusterSpec, site: str) -> tuple[BucketPlan, ...]:
    """Return the buckets to make: of a storage without a site, the first OCI site makes it."""
    first = next(name for name, here in spec.sites.items() if isinstance(here, OciSite))
    key = cast("OciSite", spec.sites[site]).kms_key
    made = {
        _parts(storage.bucket)[0]: name
        for name, storage in _buckets(spec)
        if storage.create and (storage.site or first) == site
    }
    return tuple(BucketPlan(name=name, bucket=b, kms_key=key) for b, name in made.items())


def grant_plans(spec: ClusterSpec, site: str) -> tuple[GrantPlan, ...]:
    """Return what the site's nodes may do in buckets: those that they mount, and no other."""
    pools = {name for name, pool in spec.pools.items() if pool.site == site}
    return tuple(
        GrantPlan(bucket=bucket, prefix=prefix, write=not storage.read_only)
        for _, storage in _buckets(spec)
        if storage.site in {None, site} and (not storage.pools or pools & set(storage.pools))
        for bucket, prefix in [_parts(storage.bucket)]
    )


def _buckets(spec: ClusterSpec) -> Iterator[tuple[str, ObjectStorage]]:
    for name, storage in spec.storage.items():
        if isinstance(storage, ObjectStorage) and storage.bucket.startswith(_SCHEME):
            yield name, storage


def _parts(url: str) -> tuple[str, str]:
    """Return bucket and prefix of an oci:// URL."""
    bucket, _, prefix = url.removeprefix(_SCHEME).partition("/")
    return bucket, prefix.strip("/")
