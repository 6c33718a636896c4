"""Disks for what a pool's host serves in a cloud: they outlive the host (pure)."""

from __future__ import annotations

import msgspec

from ...inventory.hosts import pool_host_names
from ...schemas.derived.storage import is_on_volume, volume_gib
from ...schemas.spec import ClusterSpec, NfsStorage


class VolumePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A disk to make and to attach to one host."""

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
