"""Which Slurm a pool gets: the distribution's own package, or one that the cluster builds itself.

A pool takes its distribution's package where that is the very version; else Slurm is built from
SchedMD's source, of which a checksum must be known. `auto` is one version on all pools: what the
tested set of the first GPUs says, else the lock's current release. Containers and simulated nodes
among themselves keep the distribution's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from ..catalog.model.source import ArtefactSource
from ..spec import ClusterSoftware
from .lock import Lock, fits, longer, parts
from .resolved import Origin, Resolved, ResolvedComponent

if TYPE_CHECKING:
    from .pools import PoolStack

DISTRIBUTION = "distribution"
"""What `software.slurm` says for whatever the distribution has."""
SOURCES = ("slurm", "slurm-tags")
"""Artefact sources of Slurm's source, the first choice first."""
_PATH_BEGINS = "slurm-"


class SlurmSource(msgspec.Struct, frozen=True, kw_only=True):
    """The source of one release of Slurm."""

    version: str
    artefact: str
    """Artefact source that has it."""
    path: str
    """Below that source's URL."""
    checksum: str
    """sha256:..., from the catalog or the spec."""


def slurm_sources(
    catalog: Mapping[str, ArtefactSource], software: ClusterSoftware
) -> tuple[SlurmSource, ...]:
    """Return every release whose checksum is known, newest first; each release once.

    Args:
        catalog: artefact sources by name.
        software: its `sources` may say checksums that the catalog doesn't, and others instead.
    """
    found: dict[str, SlurmSource] = {}
    for name in SOURCES:
        if name in catalog:
            for each in _of(catalog[name], software):
                found.setdefault(each.version, each)
    return tuple(sorted(found.values(), key=lambda each: parts(each.version), reverse=True))


def _of(source: ArtefactSource, software: ClusterSoftware) -> Iterator[SlurmSource]:
    file = source.files[0]
    redirect = software.sources.get(source.name)
    known = file.checksums | ({} if redirect is None else redirect.checksums)
    before, _, after = file.path.partition("{version}")
    for path, checksum in known.items():
        if path.startswith(before) and path.endswith(after):
            version = path.removeprefix(before).removesuffix(after).replace("-", ".")
            yield SlurmSource(version=version, artefact=source.name, path=path, checksum=checksum)


def source_of(version: str, sources: tuple[SlurmSource, ...]) -> SlurmSource | None:
    """Return the newest release that a version or its beginning means; None: none is known."""
    return next((each for each in sources if _is(version, each.version)), None)


def _is(requested: str, have: str) -> bool:
    return len(parts(requested)) <= len(parts(have)) and fits(requested, have)


def settled(
    resolved: Mapping[str, Resolved],
    stacks: Mapping[str, PoolStack],
    lock: Lock,
    sources: tuple[SlurmSource, ...],
) -> dict[str, Resolved]:
    """Return the pools with the Slurm that their nodes are given, exactly where that is known.

    Args:
        resolved: pool -> its versions, as far as sets and spec say them.
        stacks: the same pools, and what is requested of them.
        lock: knows the distributions' packages and the current release.
        sources: of `slurm_sources`.
    """
    of_slurm = {n: r for n, r in resolved.items() if stacks[n].need.scheduler == "slurm"}
    real = any(stacks[name].is_real for name in of_slurm)
    said = any(_slurm(each) is not None for each in of_slurm.values())
    default = None if said or not real else lock.slurm_default
    found = dict(resolved)
    for name, each in of_slurm.items():
        component = _slurm(each)
        if stacks[name].software.slurm == DISTRIBUTION:
            component = _own_package(each, lock, "requested")
        elif component is None and default is not None:
            component = _component(default.version, "lock", source=default.source)
        elif component is None:
            component = _own_package(each, lock, "distribution")
        if component is not None:
            found[name] = _with(each, _exactly(component, each, lock, sources), lock)
    return found


def _slurm(resolved: Resolved) -> ResolvedComponent | None:
    """Return what spec, set or another pool say; the distribution's package doesn't count."""
    found = (c for c in resolved.components if c.key == "slurm" and c.origin != "distribution")
    return next(found, None)


def _exactly(
    component: ResolvedComponent,
    resolved: Resolved,
    lock: Lock,
    sources: tuple[SlurmSource, ...],
) -> ResolvedComponent:
    """Return the component with its whole version, and where it comes from."""
    if component.install:
        return component
    package = lock.slurm_package(resolved.distribution)
    if package is not None and fits(component.version, package):
        version = longer(component.version, package)
        return msgspec.structs.replace(component, version=version, install="distribution")
    source = source_of(component.version, sources)
    version = component.version if source is None else source.version
    return msgspec.structs.replace(component, version=version, install="built")


def _own_package(resolved: Resolved, lock: Lock, origin: Origin) -> ResolvedComponent | None:
    package = lock.slurm_package(resolved.distribution)
    if package is None and origin != "requested":
        return None
    found = _component(package or "", "distribution" if package else "requested")
    return msgspec.structs.replace(found, install="distribution")


def _component(version: str, origin: Origin, *, source: str = "") -> ResolvedComponent:
    return ResolvedComponent(
        key="slurm", name="Slurm", version=version, origin=origin, source=source
    )


def _with(resolved: Resolved, component: ResolvedComponent, lock: Lock) -> Resolved:
    """Return the resolved software with this component in its place."""
    others = [c for c in resolved.components if c.key != component.key]
    order = [each.key for each in lock.components]
    every = sorted([*others, component], key=lambda each: order.index(each.key))
    return msgspec.structs.replace(resolved, components=tuple(every))
