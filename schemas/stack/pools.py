"""The software of each pool of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..catalog import Catalog
from ..catalog.model.machine import Machine
from ..diagnostics import PathTuple
from ..spec import (
    CloudSite,
    ClusterSpec,
    KubernetesScheduler,
    NoScheduler,
    Pool,
    Scheduler,
    Site,
    SlurmScheduler,
    Software,
)
from .lock import Lock, SchedulerType, load_lock, parts
from .need import Need, need_of
from .resolve import requested_versions, resolve_need
from .resolved import Resolved, ResolvedComponent
from .slurm import settled, slurm_sources
from .table import software_table

DOCA = "doca"
"""Artefact source of DOCA-OFED."""
_CLUSTER_WIDE = ("slurm", "kubernetes")
"""Components whose daemons talk to each other across pools."""


class PoolStack(msgspec.Struct, frozen=True, kw_only=True):
    """A pool, what is requested of its software, and what that gives."""

    name: str
    pool: Pool
    machine: Machine | None
    software: Software
    requested: dict[str, str]
    """Versions that are written for it, by component."""
    need: Need
    resolved: Resolved
    is_real: bool = True
    """Whether its nodes are machines of their own: no containers made here, no simulated type."""

    def where(self, key: str) -> PathTuple:
        """Return where a value of `software` that holds here is written."""
        own = self.pool.software
        if own is not None and getattr(own, key) != "auto":
            return ("pools", self.name, "software", key)
        return ("software", key)


def merged(software: Software, own: Software | None) -> Software:
    """Return the versions of the cluster with what a pool says over them; sources are left out."""
    software = Software(**{key: getattr(software, key) for key in Software.__struct_fields__})
    if own is None:
        return software
    fields = {key: value for key, value in msgspec.structs.asdict(own).items() if value != "auto"}
    return msgspec.structs.replace(software, **fields) if fields else software


def pool_stacks(
    pools: Mapping[str, Pool],
    software: Software,
    *,
    sites: Mapping[str, Site],
    scheduler: Scheduler | None,
    catalog: Catalog,
    lock: Lock,
) -> dict[str, PoolStack]:
    """Return every pool with its software, in the order of the spec; alike pools resolve once."""
    found: dict[str, PoolStack] = {}
    known: dict[tuple[Software, Need], Resolved] = {}
    machines = [catalog.machines.get(p.machine) for p in pools.values() if p.machine is not None]
    only_simulated = bool(machines) and all(m is not None and m.simulated for m in machines)
    for name, pool in pools.items():
        machine = None if pool.machine is None else catalog.machines.get(pool.machine)
        site = sites.get(pool.site)
        need = need_of(
            machine,
            pool.fabric,
            lock,
            provider=None if site is None else site.catalog_name,
            scheduler=_type_of(scheduler),
            image=_image(pool, site),
        )
        need = msgspec.structs.replace(
            need,
            rdma_drivers=pool.rdma.drivers,
            doca_for=_doca_distributions(catalog)
            if pool.rdma.managed and not isinstance(site, CloudSite)
            else (),
            **_of_kubernetes(scheduler, pool),
        )
        own = merged(software, pool.software)
        resolved = known.get((own, need)) or resolve_need(own, need, lock)
        known[own, need] = resolved
        found[name] = PoolStack(
            name=name,
            pool=pool,
            machine=machine,
            software=own,
            requested=requested_versions(own),
            need=need,
            resolved=resolved,
            is_real=not (
                (site is not None and site.is_made_here)
                or (machine.simulated if machine is not None else only_simulated)
            ),
        )
    return found


def resolved_software(spec: ClusterSpec, pool: str, catalog: Catalog) -> Resolved:
    """Return the software that a pool's nodes get.

    Slurm and Kubernetes are one version on all pools that don't say otherwise: the newest that any
    pool requests, else that of the first pool with GPUs.

    Raises:
        KeyError: the spec has no such pool.
    """
    return resolved_pools(spec, catalog)[pool]


def resolved_pools(spec: ClusterSpec, catalog: Catalog) -> dict[str, Resolved]:
    """Return the software of every pool; as `resolved_software`, for all at once."""
    lock = load_lock()
    stacks = pool_stacks(
        spec.pools,
        spec.software,
        sites=spec.sites,
        scheduler=spec.scheduler,
        catalog=catalog,
        lock=lock,
    )
    sources = slurm_sources(catalog.sources, spec.software)
    found = settled(with_cluster_versions(stacks, lock), stacks, lock, sources)
    return {name: _tabled(each, stacks[name], lock) for name, each in found.items()}


def with_cluster_versions(stacks: Mapping[str, PoolStack], lock: Lock) -> dict[str, Resolved]:
    """Return what pools resolve to, the scheduler's version being one for all that request none."""
    shared = {key: found for key in _CLUSTER_WIDE if (found := _leading(stacks, key)) is not None}
    return {
        name: _with_shared(
            stack, {k: c for k, c in shared.items() if k not in stack.requested}, lock
        )
        for name, stack in stacks.items()
    }


def _leading(stacks: Mapping[str, PoolStack], key: str) -> ResolvedComponent | None:
    """Return what pools without a version take: the newest requested, else the first GPUs'."""
    found = [
        (stack, component)
        for stack in stacks.values()
        for component in stack.resolved.components
        if component.key == key and component.origin != "distribution"
    ]
    requested = [component for _, component in found if component.origin == "requested"]
    if requested:
        return max(requested, key=lambda component: parts(component.version))
    with_gpus = (c for stack, c in found if stack.need.gpu is not None)
    return next(with_gpus, next((c for _, c in found), None))


def _with_shared(stack: PoolStack, shared: Mapping[str, ResolvedComponent], lock: Lock) -> Resolved:
    kept = [c for c in stack.resolved.components if shared.get(c.key, c).version == c.version]
    have = {component.key for component in kept}
    taken = [
        msgspec.structs.replace(c, origin="cluster") for key, c in shared.items() if key not in have
    ]
    if not taken:
        return stack.resolved
    order = [component.key for component in lock.components]
    components = sorted([*kept, *taken], key=lambda component: order.index(component.key))
    return msgspec.structs.replace(stack.resolved, components=tuple(components))


def _tabled(resolved: Resolved, stack: PoolStack, lock: Lock) -> Resolved:
    """Return what a pool resolves to, with the table of its components as they are now."""
    rows, missing = software_table(
        resolved.components,
        stack.need,
        stack.software,
        lock,
        containers=resolved.containers,
        image=lock.image(resolved.image),
    )
    return msgspec.structs.replace(resolved, rows=rows, missing=missing)


def _of_kubernetes(scheduler: Scheduler | None, pool: Pool) -> dict[str, Any]:
    """Return who runs the nodes and who brings their GPUs' driver, under Kubernetes."""
    if not isinstance(scheduler, KubernetesScheduler):
        return {}
    runs = scheduler.control_plane if pool.role == "compute" else "self"
    return {"control_plane": runs, "gpu_driver": scheduler.gpu.driver}


def _doca_distributions(catalog: Catalog) -> tuple[str, ...]:
    """Return the distributions that DOCA-OFED has packages for."""
    source = catalog.sources.get(DOCA)
    found = () if source is None else (r.distribution for r in source.repositories)
    return tuple(sorted(set(found)))


def _image(pool: Pool, site: Site | None) -> str | None:
    """Return the image that a pool names or takes from its site."""
    if pool.image is not None:
        return pool.image
    return site.image if isinstance(site, CloudSite) else None


def _type_of(scheduler: Scheduler | None) -> SchedulerType | None:
    if isinstance(scheduler, SlurmScheduler):
        return "slurm"
    if isinstance(scheduler, NoScheduler):
        return "none"
    return "kubernetes" if isinstance(scheduler, KubernetesScheduler) else None
