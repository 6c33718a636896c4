"""Versions that the spec names, for the cluster and for single pools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from weakref import WeakKeyDictionary

from msgspec import structs

from ...diagnostics import PathTuple, Severity
from ...spec import ClusterSoftware, LustreStorage, Software
from ...stack.lock import Lock, Minimum, fits, load_lock
from ...stack.need import Need
from ...stack.pools import PoolStack, pool_stacks, with_cluster_versions
from ...stack.resolve import resolve_need
from ...stack.resolved import Resolved, ResolvedComponent
from ...stack.rules import broken_equals, broken_minimums, kernel_series
from ...stack.slurm import settled, slurm_sources
from ...structure.fix.edits import Replace
from ..context import CheckContext
from ..registry import Finding, check


def tested_version(stack: PoolStack, key: str) -> tuple[str, str] | None:
    """Return the version of a component in the set that fits everything else, and the set's name.

    None when no set fits the rest, or it doesn't say the component.
    """
    rest = _resolved(structs.replace(stack.software, **{key: "auto"}), stack.need)
    version = rest.version(key)
    return (version, rest.set) if rest.tested and rest.set and version else None


@lru_cache(maxsize=256)
def _resolved(software: Software, need: Need) -> Resolved:

    return resolve_need(software, need, the_lock())


@lru_cache(maxsize=256)
def _broken_minimums(software: Software, need: Need) -> tuple[Minimum, ...]:

    return broken_minimums(_resolved(software, need).versions, need, the_lock())


def _broken(stack: PoolStack) -> Iterator[Minimum]:
    """Yield the minimums that a pool's versions miss, where the spec says one of the two."""
    for minimum in _broken_minimums(stack.software, stack.need):
        if minimum.component in stack.requested or minimum.when.component in stack.requested:
            yield minimum


def _too_old(stack: PoolStack, minimum: Minimum) -> tuple[PoolStack, Finding]:
    """Return the finding of a component that is older than another or the GPU needs."""
    lock, versions, key = the_lock(), stack.resolved.versions, minimum.component
    other = minimum.when.component or ""
    name = lock.component(key).name
    needs = minimum.when.gpu or f"{lock.component(other).name} {versions[other]}"
    if minimum.because:
        needs = f"{needs} ({minimum.because})"
    given = key in stack.requested
    whose = "" if given else f" (of the nearest tested set, {stack.resolved.set})"
    better = tested_version(stack, key)
    fits = better is not None and given
    path = stack.where(key if given else other)
    hint = f'write {key}: "{minimum.at_least}" or a newer one'
    if better is not None:
        hint = f'write {key}: "{better[0]}", tested with the rest in {better[1]}'
    return stack, Finding(
        summary=f"{name} {versions[key]}{whose} is too old for {needs}: "
        f"it takes {minimum.at_least} or newer",
        path=path,
        hint=hint,
        relies_on=relies_on(stack, *filter(None, (key, other))),
        fix=Replace(path=path, text=f'"{better[0]}"') if fits and better else None,
    )


@check("GC601", summary="The NVIDIA driver is too old for the CUDA toolkit.")
def driver_too_old_for_cuda(context: CheckContext) -> Iterator[Finding]:
    """Every major CUDA release needs a driver of a certain branch or newer.

    CUDA 13 needs driver branch 580, CUDA 12 needs 525: nothing that was built with it starts on an
    older one. Leave `driver` out to get the one that was tested with the toolkit.
    """
    yield from once(
        _too_old(stack, minimum)
        for stack in stacks(context).values()
        for minimum in _broken(stack)
        if minimum.when.component == "cuda"
    )


@check("GC602", summary="The fabric manager has another version than the driver.")
def fabric_manager_version_mismatch(context: CheckContext) -> Iterator[Finding]:
    """NVIDIA's Fabric Manager must have the driver's version on nodes with NVSwitch.

    With another one it refuses to start, and no CUDA program on the node finds its GPUs. Leave
    `fabric_manager` out: it then is the driver's.
    """
    found = ((stack, _unequal(stack)) for stack in stacks(context).values())
    yield from once((stack, finding) for stack, finding in found if finding is not None)


def _unequal(stack: PoolStack) -> Finding | None:

    if "fabric_manager" not in stack.requested:
        return None
    versions = stack.resolved.versions
    if not broken_equals(versions, stack.need, the_lock()):
        return None
    path, driver = stack.where("fabric_manager"), versions["driver"]
    return Finding(
        summary=f"NVIDIA Fabric Manager {versions['fabric_manager']} with driver {driver}: "
        "they must be one version",
        path=path,
        hint=f'write fabric_manager: "{driver}", or leave it out',
        relies_on=relies_on(stack, "fabric_manager", "driver"),
        fix=Replace(path=path, text=f'"{driver}"'),
    )


@check("GC603", summary="The NVIDIA driver is too old for the GPU.")
def driver_too_old_for_gpu(context: CheckContext) -> Iterator[Finding]:
    """A GPU is known to drivers from a certain version on.

    B200 needs 570.133.20: an older driver does not see it at all.
    """
    yield from once(
        _too_old(stack, minimum)
        for stack in stacks(context).values()
        for minimum in _broken(stack)
        if minimum.when.gpu is not None
    )


@check("GC604", summary="NCCL is too old for the fabric's plugin.")
def nccl_too_old_for_plugin(context: CheckContext) -> Iterator[Finding]:
    """NCCL reaches the fabric through a plugin, which works with NCCL from a certain version on.

    With an older NCCL the plugin isn't loaded, and the traffic silently takes TCP.
    """
    yield from once(
        _too_old(stack, minimum)
        for stack in stacks(context).values()
        for minimum in _broken(stack)
        if minimum.component == "nccl"
    )


@check("GC605", summary="A kernel that the Lustre client has no modules for.")
def kernel_without_lustre_modules(context: CheckContext) -> Iterator[Finding]:
    """The Lustre client is built for certain kernels; on another one the file system isn't mounted.

    Known for Azure Managed Lustre by distribution. Leave `kernel` out to get the image's own.
    """
    sites = {
        storage.site
        for storage in context.storage.values()
        if isinstance(storage, LustreStorage) and storage.mgs is None and storage.servers is None
    }
    if not sites:
        return
    found = (
        (stack, _kernel(stack)) for stack in stacks(context).values() if stack.pool.site in sites
    )
    yield from once((stack, finding) for stack, finding in found if finding is not None)


def _kernel(stack: PoolStack) -> Finding | None:

    kernel, distribution = stack.requested.get("kernel"), stack.resolved.distribution
    if kernel is None or distribution is None or stack.need.provider is None:
        return None
    series = kernel_series(the_lock(), "lustre", stack.need.provider, distribution)
    if not series or any(fits(kernel, known) for known in series):
        return None
    path, known = stack.where("kernel"), " or ".join(f'"{one}"' for one in series)
    return Finding(
        summary=f"kernel {kernel} has no Lustre client modules on {distribution}",
        path=path,
        hint=f"write kernel: {known}, or leave it out",
        relies_on=(*relies_on(stack, "kernel", "distribution"), ("storage",)),
        fix=Replace(path=path, text=known) if len(series) == 1 else None,
    )


@check("GC608", summary="Versions that were not tested together.")
def versions_untested_together(context: CheckContext) -> Iterator[Finding]:
    """What is written should be one of the software lock's tested sets.

    No rule forbids these versions, but they are not known to have been tested together: the message
    names the nearest set and what it has instead. `gcluster software` lists the sets.
    """
    yield from once(
        (stack, finding) for stack in stacks(context).values() for finding in _untested(stack)
    )


def _untested(stack: PoolStack) -> Iterator[Finding]:

    resolved = stack.resolved
    packaged = the_lock().slurm_package(resolved.distribution) is not None
    if any(_broken(stack)) or broken_equals(stack.resolved.versions, stack.need, the_lock()):
        return
    alone = len(resolved.differences) == 1
    for difference in resolved.differences:
        if difference.key == "slurm" and (packaged or stack.need.gpu is None):
            continue
        yield Finding(
            summary=f"{difference.name} {difference.requested} is in no tested set with the rest",
            path=stack.where(difference.key),
            severity=Severity.WARNING,
            hint=f'the nearest is {resolved.set}: write {difference.key}: "{difference.tested}"',
            relies_on=relies_on(stack, *stack.requested, "distribution"),
            fix=Replace(path=stack.where(difference.key), text=f'"{difference.tested}"')
            if alone
            else None,
        )


_NONE_GIVEN = ClusterSoftware()
_KNOWN: WeakKeyDictionary[CheckContext, Mapping[str, PoolStack]] = WeakKeyDictionary()
_NAMED = 3
"""Most pools that a message names."""


def the_lock() -> Lock:
    """Return the software lock; read only where the spec says something that needs it."""
    return load_lock()


def stacks(context: CheckContext) -> Mapping[str, PoolStack]:
    """Return the software of every pool; nothing where the spec says nothing about software."""
    pools = context.pools.values()
    if context.software == _NONE_GIVEN and all(pool.software is None for pool in pools):
        return {}
    return every_stack(context)


def every_stack(context: CheckContext) -> Mapping[str, PoolStack]:
    """Return the software of every pool, by the table that is compiled."""
    if context not in _KNOWN:
        _KNOWN[context] = pool_stacks(
            context.pools,
            context.software,
            sites=context.sites,
            scheduler=context.scheduler,
            catalog=context.catalog,
            lock=the_lock(),
        )
    return _KNOWN[context]


def slurm_of_pools(context: CheckContext) -> dict[str, ResolvedComponent]:
    """Return pool -> its Slurm, exactly; pools of which nothing is known are left out."""
    found = stacks(context)
    known = slurm_sources(context.catalog.sources, context.software) if found else ()
    resolved = settled(with_cluster_versions(found, the_lock()), found, the_lock(), known)
    return {
        name: component
        for name, each in resolved.items()
        for component in each.components
        if component.key == "slurm"
    }


def relies_on(stack: PoolStack, *keys: str) -> tuple[PathTuple, ...]:
    """Return what a finding about these fields of a pool's software is drawn from."""
    name = stack.name
    pool: list[PathTuple] = [("pools", name, key) for key in ("machine", "fabric", "site")]
    written: list[PathTuple] = [("software", key) for key in keys]
    return (*pool, *written, *(("pools", name, *path) for path in written), ("scheduler", "type"))


def once(found: Iterable[tuple[PoolStack, Finding]]) -> Iterator[Finding]:
    """Yield what is found for several pools at one place once, with the pools' names before it."""
    first: dict[tuple[PathTuple, str], Finding] = {}
    pools: dict[tuple[PathTuple, str], list[str]] = {}
    for stack, finding in found:
        key = (finding.path, finding.summary)
        first.setdefault(key, finding)
        pools.setdefault(key, []).append(stack.name)
    for key, finding in first.items():
        yield structs.replace(finding, summary=f"{_named(pools[key])}: {finding.summary}")


def _named(pools: list[str]) -> str:
    names = ", ".join(f'"{name}"' for name in pools[:_NAMED])
    if len(pools) > _NAMED:
        return f"{len(pools):,} pools ({names} ...)"
    return f"pool {names}" if len(pools) == 1 else f"pools {names}"
