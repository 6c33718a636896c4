"""Storage of the spec as file systems and buckets of OCI, and what nodes may read there (pure)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from ....schemas.spec import ClusterSpec, OciFileStorage
from ....schemas.spec.sites import OciSite
from ....schemas.spec.storage import LustreStorage
from ...pulumi.plan import bucket_and_prefix, made_lustre, made_services, site_of
from .types import FileStoragePlan, LinkPlan, LustrePlan

_GIB = 2**30
_MB = 10**6
_LONGEST_FSNAME = 8
"""Characters of a Lustre file system's name (CreateLustreFileSystem)."""
_SLOWEST = 125
"""MB/s for each TB of the smallest tier: the spec's default."""


def lustre_plans(spec: ClusterSpec, site: str) -> tuple[LustrePlan, ...]:
    """Return the file systems that a site makes; those that exist or that hosts serve are left."""
    here = site_of(spec, site, OciSite)
    return tuple(_lustre(name, storage, here) for name, storage in made_lustre(spec, site))


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


def file_storage_plans(spec: ClusterSpec, site: str, cidr: str) -> tuple[FileStoragePlan, ...]:
    """Return the file systems of File Storage that a site makes; `cidr` is of its nodes."""
    here = site_of(spec, site, OciSite)
    return tuple(
        FileStoragePlan(
            name=name,
            domain=int(storage.zone or here.availability_domain or "1"),
            kms_key=storage.kms_key or here.kms_key,
            clients=(cidr,) if cidr else (),
        )
        for name, storage in made_services(spec, site, OciFileStorage)
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
            bucket, prefix = bucket_and_prefix(url)
            path = "/" if None in wanted.values() or len(wanted) == 1 else f"/{what}"
            yield LinkPlan(
                what=what, bucket=bucket, prefix=prefix, path=path, imports=what != "export"
            )
