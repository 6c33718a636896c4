"""What checks look at: the parts of a spec whose structure holds, indexed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from ..catalog import Catalog, Fabric, Machine, ProviderFacts
from ..derived.hostlist import HostlistError, expand
from ..derived.links import Routes
from ..derived.rails import machine_in_pool
from ..derived.storage import Mounts
from ..diagnostics import PathTuple, closest
from ..spec import (
    Budget,
    Checkpointing,
    CloudSite,
    ClusterHook,
    ClusterSoftware,
    DirectoryUsers,
    Hardening,
    HostEntry,
    KubernetesScheduler,
    Link,
    Maintenance,
    Monitoring,
    Pool,
    Scheduler,
    Secrets,
    Site,
    SlurmScheduler,
    Smoke,
    Spill,
    Storage,
    User,
    Workload,
)

_SUGGESTIONS = 50
"""Most suggestions looked for in one run: each compares with every name there is."""


class HostGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Hosts named by one item of a pool: None where a range can't be read."""

    pool: str
    path: PathTuple
    written: str
    entry: HostEntry | None
    names: tuple[str, ...] | None
    addresses: tuple[str, ...] | None
    error: str = ""
    """Why the names can't be read."""
    address_error: str = ""


class CheckContext:
    """The spec as far as it holds. Checks treat what is not here as unknown and stay silent."""

    def __init__(
        self,
        parts: Mapping[str, Any],
        *,
        declared: Callable[[str], Iterable[str] | None],
        catalog: Callable[[], Catalog],
        line_of: Callable[[PathTuple], int | None],
    ) -> None:
        """Hold the typed parts.

        Args:
            parts: typed root fields of the spec, by attribute.
            declared: names written under a key of the root or below ("scheduler.qos"), broken
                entries included; None: no mapping.
            catalog: gives the machine types; called only when a check needs them.
            line_of: line of the file that a path of the parts is on.
        """
        self.name: str | None = parts.get("name")
        self.tags: dict[str, str] = parts.get("tags", {})
        self.sites: dict[str, Site] = parts.get("sites", {})
        self.links: list[Link] = parts.get("links", [])
        self.pools: dict[str, Pool] = parts.get("pools", {})
        self.storage: dict[str, Storage] = parts.get("storage", {})
        self.scheduler: Scheduler | None = parts.get("scheduler")
        users = parts.get("users", [])
        self.users: list[User] = users if isinstance(users, list) else []
        self.directory: DirectoryUsers | None = None if isinstance(users, list) else users
        self.software: ClusterSoftware = parts.get("software", ClusterSoftware())
        self.monitoring: Monitoring | None = parts.get("monitoring")
        self.checkpointing: Checkpointing | None = parts.get("checkpointing")
        self.smoke: Smoke = parts.get("smoke", Smoke())
        self.hardening: Hardening | None = parts.get("hardening")
        self.ssh_authorities: list[str] = parts.get("ssh_authorities", [])
        self.hooks: dict[str, ClusterHook] = parts.get("hooks", {})
        self.converge: str = parts.get("converge", "auto")
        self.budget: Budget | None = parts.get("budget")
        self.workloads: dict[str, Workload] = parts.get("workloads", {})
        self.state: str | None = parts.get("state")
        self.secrets: Secrets | None = parts.get("secrets")
        self.line_of = line_of
        self._declared = declared
        self._catalog = catalog
        self._suggestions_left = _SUGGESTIONS
        self._declared_names: dict[str, frozenset[str] | None] = {}

    @cached_property
    def declared_sites(self) -> frozenset[str] | None:
        """Names of all sites, broken ones included; None when that can't be known."""
        return _names(self._declared("sites"))

    @cached_property
    def declared_pools(self) -> frozenset[str] | None:
        """Names of all pools, broken ones included; None when that can't be known."""
        return _names(self._declared("pools"))

    @property
    def slurm(self) -> SlurmScheduler | None:
        """The scheduler when it is Slurm."""
        return self.scheduler if isinstance(self.scheduler, SlurmScheduler) else None

    @property
    def kubernetes(self) -> KubernetesScheduler | None:
        """The scheduler when it is Kubernetes."""
        return self.scheduler if isinstance(self.scheduler, KubernetesScheduler) else None

    @property
    def maintenance(self) -> Mapping[str, Maintenance]:
        """Windows of the scheduler, by name."""
        windows: Mapping[str, Maintenance] = getattr(self.scheduler, "maintenance", {})
        return windows

    def declared(self, key: str) -> frozenset[str] | None:
        """Names under a key ("scheduler.qos"), broken entries included; None: that is not known."""
        if key not in self._declared_names:
            self._declared_names[key] = _names(self._declared(key))
        return self._declared_names[key]

    @cached_property
    def spills(self) -> Mapping[str, Spill]:
        """Where jobs go that wait too long, by the partition they waited in."""
        if self.scheduler is None:
            return {}
        partitions = self.scheduler.partitions.items()
        return {name: partition.spill for name, partition in partitions if partition.spill}

    @cached_property
    def mounts(self) -> Mounts:
        """Which nodes see which storage."""
        return Mounts(self.storage, self.pools, self.declared_sites)

    @cached_property
    def routes(self) -> Routes:
        """Which sites reach each other, by the spec's links."""
        return Routes(self.links)

    @cached_property
    def catalog(self) -> Catalog:
        """Machine types, fabric classes and providers; read when first needed."""
        return self._catalog()

    @property
    def machines(self) -> Mapping[str, Machine]:
        """Machine types of the catalog."""
        return self.catalog.machines

    @property
    def fabrics(self) -> Mapping[str, Fabric]:
        """Fabric classes of the catalog."""
        return self.catalog.fabrics

    @property
    def providers(self) -> Mapping[str, ProviderFacts]:
        """Facts about providers of the catalog."""
        return self.catalog.providers

    def machine(self, pool: Pool) -> Machine | None:
        """Return the machine type of a pool; None when it names none or an unknown one."""
        return None if pool.machine is None else self.machines.get(pool.machine)

    def machine_in_pool(self, pool: Pool) -> Machine | None:
        """Return the machine type of a pool with the rails that its nodes have."""
        return machine_in_pool(self.machine(pool), pool, self.fabric(pool))

    def fabric(self, pool: Pool) -> Fabric | None:
        """Return the fabric class of a pool: its own, else its machine type's; None: not known."""
        machine = self.machine(pool)
        name = pool.fabric or (None if machine is None else machine.fabric)
        return None if name is None else self.fabrics.get(name)

    def cloud(self, pool: Pool) -> CloudSite | None:
        """Return the pool's site when that is a cloud's."""
        site = self.sites.get(pool.site)
        return site if isinstance(site, CloudSite) else None

    def facts(self, pool: Pool) -> ProviderFacts | None:
        """Return what is known of the provider of a pool's site; None when nothing is."""
        return self.site_facts(pool.site)

    def site_facts(self, name: str | None) -> ProviderFacts | None:
        """Return what is known of the provider of a site; None when nothing is."""
        site = None if name is None else self.sites.get(name)
        return None if site is None else self.providers.get(site.provider)

    def are_apart(self, one: str | None, other: str | None) -> bool:
        """Say whether no route leads between two declared sites.

        Sites that are no clouds may be routed by their own networks, so only links to clouds count.
        """
        ends = [self.sites.get(one or ""), self.sites.get(other or "")]
        if one == other or None in ends or not any(isinstance(end, CloudSite) for end in ends):
            return False
        known = self.routes.ends <= (self.declared_sites or frozenset())
        return known and not self.routes.joins(one or "", other or "")

    @cached_property
    def host_groups(self) -> tuple[HostGroup, ...]:
        """All hosts that bare-metal pools name, one group an item, in file order."""
        return tuple(
            _host_group(name, path, item)
            for name, pool in self.pools.items()
            if pool.hosts is not None
            for path, item in _host_items(name, pool)
        )

    @cached_property
    def pools_of_site(self) -> Mapping[str, list[str]]:
        """Pool names by the site they come from."""
        pools: dict[str, list[str]] = {}
        for name, pool in self.pools.items():
            pools.setdefault(pool.site, []).append(name)
        return pools

    @cached_property
    def _host_counts(self) -> Mapping[str, int | None]:
        counts: dict[str, int | None] = {}
        for group in self.host_groups:
            before = counts.get(group.pool, 0)
            known = before is not None and group.names is not None
            counts[group.pool] = before + len(group.names) if known else None  # type: ignore[operator,arg-type]  # known says so
        return counts

    def makes_machines(self, pool: Pool) -> bool | None:
        """Say whether the pool's site makes its machines; None when the site is unknown."""
        site = self.sites.get(pool.site)
        return None if site is None else site.makes_machines

    def exists(self, site: str | None) -> bool:
        """Say whether a site's machines and network were there before the cluster."""
        found = self.sites.get(site or "")
        return found is not None and not found.makes_machines

    def catalog_name(self, pool: Pool) -> str | None:
        """Return what machine types call the provider of the pool's site; None: unknown site."""
        site = self.sites.get(pool.site)
        return None if site is None else site.catalog_name

    def provider(self, pool: Pool) -> str | None:
        """Return the provider of the pool's site, or None when the site is unknown."""
        site = self.sites.get(pool.site)
        return None if site is None else site.provider

    def size(self, name: str) -> int | None:
        """Return how many machines a pool has at most, or None when that can't be known.

        A controller or login pool of a site that makes machines has one unless it says more.
        """
        pool = self.pools[name]
        if pool.hosts is not None:
            return self._host_counts.get(name, 0)
        if pool.most is not None:
            return pool.most
        return 1 if pool.role != "compute" and self.makes_machines(pool) else None

    def suggest(self, word: str, options: Iterable[str]) -> str | None:
        """Return the closest option; None when none is close or enough was suggested already."""
        if self._suggestions_left <= 0:
            return None
        self._suggestions_left -= 1
        return closest(word, options)


def _names(names: Iterable[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _host_items(name: str, pool: Pool) -> Iterable[tuple[PathTuple, str | HostEntry]]:
    where: PathTuple = ("pools", name, "hosts")
    if isinstance(pool.hosts, str):
        return [(where, pool.hosts)]
    return [((*where, index), item) for index, item in enumerate(pool.hosts or ())]


def _host_group(pool: str, path: PathTuple, item: str | HostEntry) -> HostGroup:
    entry = None if isinstance(item, str) else item
    written = item if isinstance(item, str) else item.name
    names, error = _expanded(written)
    addresses, address_error = _expanded(entry.address) if entry and entry.address else (None, "")
    return HostGroup(
        pool=pool,
        path=path,
        written=written,
        entry=entry,
        names=names,
        addresses=addresses,
        error=error,
        address_error=address_error,
    )


def _expanded(text: str) -> tuple[tuple[str, ...] | None, str]:
    try:
        return tuple(expand(text)), ""
    except HostlistError as error:
        return None, str(error)
