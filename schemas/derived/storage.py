"""Which nodes see which storage, which copies data has, and what checkpoints need."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from ..spec import (
    ClusterSpec,
    EfsStorage,
    LocalSite,
    LustreStorage,
    NfsStorage,
    ObjectStorage,
    OpenZfsStorage,
    Pool,
    ScratchStorage,
    Storage,
    StorageModel,
)


def mount_point(storage: StorageModel) -> str:
    """Return where a storage is mounted, without "//", "..", or a slash at the end."""
    return "/" + posixpath.normpath(storage.mount).lstrip("/")


def copy_place(storage: Mapping[str, Storage], to: str) -> tuple[str, str] | None:
    """Return the storage and the folder in it that a copy of checkpoints goes to.

    Args:
        storage: of the spec.
        to: its name, or the URL of its bucket or of a prefix in that; of several buckets the
            one with the longest name is it.
    """
    if to in storage:
        return to, ""
    url = to.rstrip("/") + "/"
    found = [
        (each.bucket.rstrip("/") + "/", name)
        for name, each in storage.items()
        if isinstance(each, ObjectStorage) and url.startswith(each.bucket.rstrip("/") + "/")
    ]
    if not found:
        return None
    bucket, name = max(found)
    return name, url.removeprefix(bucket).strip("/")


class Mounts:
    """The storage of a spec and the pools that mount it.

    A storage with `pools` is mounted by these, one with `site` by all pools of the site, and any
    other by all pools. Local disks that name no pools are those of the nodes that work.
    """

    def __init__(
        self,
        storage: Mapping[str, Storage],
        pools: Mapping[str, Pool],
        sites: Iterable[str] | None = None,
    ) -> None:
        """Hold the parts; with the names of all sites, a misspelt one can be reported."""
        self._storage = storage
        self._pools = pools
        self._sites = None if sites is None else frozenset(sites)
        self._origins: dict[str, str] = {}

    def home(self, name: str) -> str | None:
        """Return the site that a storage is at; None where nothing says."""
        storage = self._storage[name]
        server = self.server(name)
        if storage.site is None and server is not None:
            return self._pools[server].site
        return storage.site

    def is_certain(self, name: str) -> bool:
        """Say whether the site and pools that a storage names are there: who mounts it is known."""
        storage = self._storage[name]
        site_known = None in {storage.site, self._sites} or storage.site in (self._sites or ())
        return site_known and all(pool in self._pools for pool in storage.pools)

    @cached_property
    def are_certain(self) -> bool:
        """Whether it is known of every storage who mounts it."""
        return all(self.is_certain(name) for name in self._storage)

    def server(self, name: str) -> str | None:
        """Return the pool whose hosts serve a storage; None: none of the spec's."""
        storage = self._storage[name]
        server = storage.server if isinstance(storage, NfsStorage) else None
        if isinstance(storage, LustreStorage) and storage.servers is not None:
            server = storage.servers.pool
        return server if server in self._pools else None

    @cached_property
    def servers(self) -> Mapping[str, list[str]]:
        """What each pool serves, where it serves something."""
        served: dict[str, list[str]] = {}
        for name in self._storage:
            server = self.server(name)
            if server is not None:
                served.setdefault(server, []).append(name)
        return served

    @cached_property
    def _by_pool(self) -> tuple[list[str], dict[str, list[str]], dict[str, list[str]]]:
        """Return storage that all pools mount, by site, and by pool."""
        everywhere: list[str] = []
        by_site: dict[str, list[str]] = {}
        by_pool: dict[str, list[str]] = {}
        for name, storage in self._storage.items():
            if storage.pools:
                for pool in storage.pools:
                    by_pool.setdefault(pool, []).append(name)
            elif storage.site is not None:
                by_site.setdefault(storage.site, []).append(name)
            else:
                everywhere.append(name)
        return everywhere, by_site, by_pool

    def origin(self, name: str) -> str:
        """Return the storage that a declared one is a copy of in the end; itself when of none."""
        trail: list[str] = []
        known = self._origins
        while name not in known:
            trail.append(name)
            known[name] = name  # ends a circle
            source = self._storage[name].copy_of
            if source is None or source not in self._storage:
                break
            name = source
        for copy in trail:
            known[copy] = known[name]
        return known[name]

    def of(self, pool: str) -> Iterator[str]:
        """Yield the storage that a pool's nodes mount."""
        everywhere, by_site, by_pool = self._by_pool
        for name in (*everywhere, *by_site.get(self._pools[pool].site, ())):
            if self._may_mount(name, pool):
                yield name
        yield from by_pool.get(pool, ())

    def mounted_by(self, name: str) -> Iterator[str]:
        """Yield the declared pools that mount a storage."""
        storage = self._storage[name]
        if storage.pools:
            yield from (pool for pool in storage.pools if pool in self._pools)
        else:
            site = storage.site
            pools = self._pools if site is None else self._pools_of_site.get(site, ())
            yield from (pool for pool in pools if self._may_mount(name, pool))

    def _may_mount(self, name: str, pool: str) -> bool:
        """Say whether a pool that isn't named mounts a storage of its site."""
        works = self._pools[pool].is_compute
        return works or not isinstance(self._storage[name], ScratchStorage)

    @cached_property
    def _pools_of_site(self) -> Mapping[str, list[str]]:
        pools: dict[str, list[str]] = {}
        for name, pool in self._pools.items():
            pools.setdefault(pool.site, []).append(name)
        return pools


def own_disks(spec: ClusterSpec) -> dict[str, str]:
    """Return pool -> the storage that its nodes' own disks are, where the spec has one for them."""
    mounts = Mounts(spec.storage, spec.pools)
    return {
        pool: name
        for name, storage in spec.storage.items()
        if isinstance(storage, ScratchStorage)
        for pool in mounts.mounted_by(name)
    }


def is_on_volume(spec: ClusterSpec, name: str) -> bool:
    """Say whether what a pool's host serves lies on a disk of its own, which the cloud keeps."""
    storage = spec.storage[name]
    pool = spec.pools.get(storage.server or "") if isinstance(storage, NfsStorage) else None
    return pool is not None and pool.role != "compute" and spec.sites[pool.site].is_cloud


def simulated_nfs(spec: ClusterSpec, pool: str) -> tuple[str, ...]:
    """Return a pool's NFS that a folder simulates: the nodes of its local site share one."""
    if not isinstance(spec.sites[spec.pools[pool].site], LocalSite):
        return ()
    mounts = Mounts(spec.storage, spec.pools)
    return tuple(name for name in mounts.of(pool) if isinstance(spec.storage[name], NfsStorage))


_GIB = 2**30
_VOLUME_GIB = 500
"""Disk of an export that says no size: homes of a team. A gp3 of that size is $40 a month."""


def volume_gib(storage: NfsStorage) -> int:
    """Return the size of an export's disk in GiB, rounded up."""
    return _VOLUME_GIB if storage.capacity is None else math.ceil(storage.capacity.value / _GIB)


class MountTable:
    """Storage by the nodes that mount it; says whether another one is mounted by some of them."""

    def __init__(self, pools: Mapping[str, Pool]) -> None:
        """Start empty."""
        self._pools = pools
        self._any: dict[str, str] = {}
        self._everywhere: dict[str, str] = {}
        self._by_site: dict[tuple[str, str], str] = {}
        self._in_site: dict[tuple[str, str], str] = {}
        self._by_pool: dict[tuple[str, str], str] = {}

    def add(self, name: str, storage: Storage) -> None:
        """Take a storage up under its mount point; of two on the same nodes the first stays."""
        mount = mount_point(storage)
        self._any.setdefault(mount, name)
        for pool in storage.pools:
            self._by_pool.setdefault((mount, pool), name)
            if pool in self._pools:
                self._in_site.setdefault((mount, self._pools[pool].site), name)
        if not storage.pools and storage.site is None:
            self._everywhere.setdefault(mount, name)
        elif not storage.pools:
            self._by_site.setdefault((mount, storage.site or ""), name)

    def other(self, mount: str, storage: Storage) -> str | None:
        """Return the storage of the table at `mount` that nodes of another one mount too."""
        if not storage.pools and storage.site is None:
            return self._any.get(mount)
        if mount in self._everywhere:
            return self._everywhere[mount]
        if not storage.pools:
            key = (mount, storage.site or "")
            return self._by_site.get(key) or self._in_site.get(key)
        for pool in storage.pools:
            site = self._pools[pool].site if pool in self._pools else ""
            found = self._by_pool.get((mount, pool)) or self._by_site.get((mount, site))
            if found is not None:
                return found
        return None


class DataLocation(msgspec.Struct, frozen=True, kw_only=True):
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
    own: bool = False
    """Each node has its own, on its own disks."""


def data_locations(spec: ClusterSpec, pool: str) -> dict[str, DataLocation]:
    """Return storage -> where a pool's nodes find its data; storage that isn't there is left out.

    Of several copies the one at the folder that jobs know comes first, then one that needs no
    staging.
    """
    mounts = Mounts(spec.storage, spec.pools)
    mounted = list(mounts.of(pool))
    there: dict[str, DataLocation] = {}
    for name, storage in spec.storage.items():
        if name in mounted:
            there[name] = DataLocation(storage=name)
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
            there[name] = DataLocation(storage=ranked[0], stage_within=_within(spec, ranked[0]))
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
            own=isinstance(storage, ScratchStorage),
        )
        for name, storage in spec.storage.items()
        if name in mounted and storage.copy_of in mounted and storage.stage_within is not None
    )


def _within(spec: ClusterSpec, storage: str) -> float | None:
    stage_within = spec.storage[storage].stage_within
    return None if stage_within is None else stage_within.value


_TIB = 2.0**40
_SECONDS_PER_HOUR = 3600


def write_bytes_per_s(storage: StorageModel) -> float | None:
    """Return what a storage takes from many nodes together by the spec; None: it doesn't say.

    A managed Lustre has a throughput for each TiB, Amazon EFS one that is provisioned, which counts
    writes in full, and FSx for OpenZFS one of its file server.
    """
    if isinstance(storage, OpenZfsStorage) or (
        isinstance(storage, EfsStorage) and storage.throughput_mode == "provisioned"
    ):
        return None if storage.throughput is None else storage.throughput.value
    if not isinstance(storage, LustreStorage) or None in (storage.capacity, storage.throughput):
        return None
    assert storage.capacity is not None  # noqa: S101  # for mypy
    assert storage.throughput is not None  # noqa: S101  # for mypy
    return storage.capacity.value / _TIB * storage.throughput.value


def mtbf_s(gpus: int, failures_per_gpu_hour: float) -> float:
    """Return M in seconds: one failure of any GPU stops the job."""
    return _SECONDS_PER_HOUR / (gpus * failures_per_gpu_hour)


def daly_interval_s(delta: float, m: float) -> float:
    """Return the tau that wastes least, in seconds.

    Daly's estimate: sqrt(2 delta M) (1 + 1/3 sqrt(delta/2M) + 1/9 (delta/2M)) - delta where
    delta < 2 M, else M (J. T. Daly, A higher order estimate of the optimum checkpoint interval for
    restart dumps, FGCS 22, 2006). Without the terms after the first it is Young's (CACM 17, 1974).
    """
    if delta >= 2 * m:
        return m
    ratio = delta / (2 * m)
    return math.sqrt(2 * delta * m) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - delta


def waste(tau: float, delta: float, m: float) -> float:
    """Return the share of its time that a job loses, at most 1.

    delta/tau is spent writing, and each failure loses tau/2 on average. The time to start again
    adds the same to every tau and is left out.
    """
    return min(1.0, delta / tau + tau / (2 * m))
