"""What data nodes find at their site: the storage itself, a copy, or one staged before jobs."""

from __future__ import annotations

import msgspec

from .mounts import Mounts, mount_point
from .spec import ClusterSpec


class DataThere(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pool's nodes find a storage's data."""

    storage: str
    """What they mount: the storage itself, or a copy of it."""
    stage_within: float | None = None
    """Seconds in which it is staged before a job; None: it is there at all times."""


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """A storage that nodes fill from another one which they mount too."""

    storage: str
    source: str
    """Mount point of what it is a copy of."""
    destination: str
    """Its own mount point."""
    within: float
    """Seconds that staging may take."""


def data_there(spec: ClusterSpec, pool: str) -> dict[str, DataThere]:
    """Return storage -> where a pool's nodes find its data; storage that isn't there is left out.

    Of several copies the one at the folder that jobs know comes first, then one that needs no
    staging.
    """
    mounts = Mounts(spec.storage, spec.pools)
    mounted = list(mounts.of(pool))
    there: dict[str, DataThere] = {}
    for name, storage in spec.storage.items():
        if name in mounted:
            there[name] = DataThere(storage=name)
            continue
        alike = [each for each in mounted if mounts.origin(each) == mounts.origin(name)]
        known = mount_point(storage)
        ranked = sorted(
            alike,
            key=lambda each: (
                mount_point(spec.storage[each]) != known,
                _within(spec, each) or 0.0,
            ),
        )
        if ranked:
            there[name] = DataThere(storage=ranked[0], stage_within=_within(spec, ranked[0]))
    return there


def staged(spec: ClusterSpec, pool: str) -> tuple[Staged, ...]:
    """Return what a pool's nodes can stage, in spec order: they mount it and its source."""
    mounted = frozenset(Mounts(spec.storage, spec.pools).of(pool))
    return tuple(
        Staged(
            storage=name,
            source=mount_point(spec.storage[storage.copy_of]),
            destination=mount_point(storage),
            within=storage.stage_within.value,
        )
        for name, storage in spec.storage.items()
        if name in mounted and storage.copy_of in mounted and storage.stage_within is not None
    )


def _within(spec: ClusterSpec, storage: str) -> float | None:
    said = spec.storage[storage].stage_within
    return None if said is None else said.value
