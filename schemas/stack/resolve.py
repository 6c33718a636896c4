"""Resolve what a pool requests to a set of versions, by the rules of the lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from ..catalog import Machine
from ..spec import Software
from .lock import (
    Component,
    Distribution,
    Lock,
    Part,
    SchedulerType,
    TestedSet,
    VendorImage,
    fits,
    longer,
)
from .need import Need, need_of
from .resolved import INBOX, Difference, Origin, Resolved, ResolvedComponent
from .rules import broken_minimums
from .table import (
    PREINSTALLED,
    WITH_DRIVER,
    is_preinstalled,
    software_table,
)


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A set that was tested on such nodes, and how it compares with what is requested."""

    tested: TestedSet
    differences: tuple[Difference, ...]
    versions: dict[str, str]
    """What the nodes would get."""
    rank: tuple[int, ...]
    """Less is nearer."""


def resolve(
    software: Software,
    machine: Machine | None,
    fabric: str | None,
    lock: Lock,
    *,
    provider: str | None = None,
    scheduler: SchedulerType | None = None,
) -> Resolved:
    """Return the versions that nodes of a machine type get.

    Args:
        software: what the spec says for them.
        machine: their type; None: nodes without a GPU.
        fabric: their fabric class; None: the machine's own.
        lock: the tested sets.
        provider: of their site; sets tested there come first.
        scheduler: of the cluster; None: both are left in.
    """
    need = need_of(machine, fabric, lock, provider=provider, scheduler=scheduler)
    return resolve_need(software, need, lock)


_NO_VERSIONS = frozenset({"distribution", "containers", "sources"})


def requested_versions(software: Software) -> dict[str, str]:
    """Return the versions that are written, by component."""
    given = msgspec.structs.asdict(software)
    return {
        key: version
        for key, version in given.items()
        if version not in {"auto", PREINSTALLED, "distribution"} and key not in _NO_VERSIONS
    }


def resolve_need(software: Software, need: Need, lock: Lock) -> Resolved:
    """Return the versions that nodes with these needs get; as `resolve`."""
    parts = {component.key: component.part for component in lock.components}
    requested = {
        key: version
        for key, version in requested_versions(software).items()
        if need.uses(parts[key])
    }
    named = None if need.image is None else lock.named_image(need.provider, need.image)
    wanted = software.distribution
    if wanted == "auto" and named is not None:
        wanted = named.distribution
    possible = [tested for tested in lock.sets if _was_tested_on(tested, need)]
    here = [t for t in possible if wanted in {"auto", *t.distributions}]
    ranked = [_candidate(tested, requested, need, lock) for tested in here]
    newest = sorted(ranked, key=lambda c: (c.tested.evidence.date, c.tested.name), reverse=True)
    best = min(newest, key=lambda c: c.rank, default=None)
    distribution = _distribution(wanted, best, need, lock)
    containers = _containers(software, best, need)
    image = named if need.image is not None else _default_image(need, distribution, lock)
    choice = _Choice(
        best=best,
        requested=requested,
        need=need,
        software=software,
        distribution=distribution,
        containers=containers,
        image=image,
    )
    components = tuple(_components(choice, lock))
    rows, missing = software_table(
        components, need, software, lock, containers=containers, image=image
    )
    drives = any(row.key == "driver" and row.outcome == "role" for row in rows)
    return Resolved(
        set=best.tested.name if best else None,
        tested=best is not None and not best.differences,
        reason=_reason(best, len(here), len(possible), need),
        distribution=distribution,
        containers=containers,
        components=components,
        differences=best.differences if best else (),
        packages=tuple(n.package for n in lock.needs if n.gpu == need.gpu) if drives else (),
        evidence=best.tested.evidence if best else None,
        image=None if image is None else image.name,
        rows=rows,
        missing=missing,
    )


def _default_image(need: Need, distribution: Distribution | None, lock: Lock) -> VendorImage | None:
    """Return what the provider boots such nodes with, where that brings software."""
    if need.control_plane != "self":
        return None
    here = (need.provider, need.vendor, distribution, need.architecture or "x86_64")
    return next(
        (
            image
            for image in lock.images
            if image.default
            and (image.provider, image.vendor, image.distribution, image.architecture) == here
        ),
        None,
    )


def _was_tested_on(tested: TestedSet, need: Need) -> bool:
    """Say whether a set is of such GPUs, processors and fabric plugin."""
    if tested.capabilities:
        here = need.architecture in {None, *tested.architectures}
        return here and _runs_under(tested, need) and need.capability in tested.capabilities
    if (need.gpu is None) != (not tested.gpus) or (need.gpu and need.gpu not in tested.gpus):
        return False
    if need.architecture is not None and need.architecture not in tested.architectures:
        return False
    if need.gpu is None and need.provider not in {None, *tested.providers}:
        return False
    if not _runs_under(tested, need):
        return False
    return need.plugin is None or need.fabric in tested.fabrics


def _runs_under(tested: TestedSet, need: Need) -> bool:
    """Say whether a set was tested under this scheduler.

    Without a scheduler programs run on the nodes themselves, as Slurm's jobs do.
    """
    same = "slurm" if need.scheduler == "none" else need.scheduler
    return same is None or tested.scheduler in {None, same}


def _candidate(tested: TestedSet, requested: dict[str, str], need: Need, lock: Lock) -> _Candidate:
    differences = tuple(
        Difference(
            key=key,
            name=lock.component(key).name,
            requested=version,
            tested=tested.versions[key],
        )
        for key, version in requested.items()
        if key in tested.versions and not fits(version, tested.versions[key])
    )
    versions = {**tested.versions, **requested}
    unsaid = sum(key not in tested.versions for key in requested)
    elsewhere = need.provider not in tested.providers
    broken = len(broken_minimums(versions, need, lock))
    general = bool(tested.capabilities)
    rank = (int(general), len(differences), broken, unsaid, int(elsewhere))
    return _Candidate(tested=tested, differences=differences, versions=versions, rank=rank)


_OF_GPUS: tuple[Part, ...] = ("nvidia", "nvswitch", "nvlink-domain", "amd")


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What the components of a pool are chosen by."""

    best: _Candidate | None
    requested: dict[str, str]
    need: Need
    software: Software
    distribution: Distribution | None
    containers: Literal["pyxis", "none"]
    image: VendorImage | None

    @property
    def brought(self) -> Mapping[str, str | None]:
        """What the image brings to nodes with such GPUs."""
        image = self.image
        return {} if image is None or image.vendor != self.need.vendor else image.brings

    @property
    def is_image_unfit(self) -> bool:
        """Whether the image's driver, and what was built for it, is for other GPUs."""
        made_for = () if self.image is None else self.image.capabilities
        return bool(made_for) and self.need.capability not in made_for


def _components(choice: _Choice, lock: Lock) -> Iterator[ResolvedComponent]:
    """Yield every component that the nodes use, in the lock's order."""
    versions = dict(choice.best.tested.versions) if choice.best else {}
    versions |= {key: version for key, version in choice.brought.items() if version}
    versions |= choice.requested
    for component in lock.components:
        found = _chosen(component, choice, versions, lock)
        if found is not None:
            yield found


def _chosen(
    component: Component, choice: _Choice, versions: Mapping[str, str], lock: Lock
) -> ResolvedComponent | None:
    """Return a component as the nodes get it; None: they don't, or nothing is known of it.

    What the image has comes first (`validate` says no where the spec requests another), then what
    the spec says, the tested set, the distribution's package, and what goes with the rest.
    """
    key, requested = component.key, choice.requested
    if not choice.need.uses(component.part) or is_preinstalled(key, choice.software):
        return None
    if _is_brought(component, choice, versions):
        return _of_image(component, choice, versions)
    tested = choice.best.tested if choice.best else None
    have = tested.versions.get(key) if tested else None
    if key in requested:
        version = (
            longer(requested[key], have) if have and fits(requested[key], have) else requested[key]
        )
        return _component(component, version, tested, "requested")
    if key == "fabric_manager" and choice.need.nvswitch is None:
        return None
    return _of_set(component, choice, versions) or _of_companion(component, choice, versions, lock)


def _is_brought(component: Component, choice: _Choice, versions: Mapping[str, str]) -> bool:
    """Say whether the image has a component, or the distribution's own drivers are taken."""
    if component.key != "ofed":
        return component.key in choice.brought
    requested = choice.need.rdma_drivers
    other = _other_rdma_drivers(choice, versions) is not None
    return other or (component.key in choice.brought and requested != "doca")


def _of_image(
    component: Component, choice: _Choice, versions: Mapping[str, str]
) -> ResolvedComponent | None:
    """Return what the image has of a component; None: it is for other GPUs."""
    if choice.is_image_unfit and component.part in _OF_GPUS:
        return None
    other = _other_rdma_drivers(choice, versions) if component.key == "ofed" else None
    version = INBOX if other == "distribution" else choice.brought.get(component.key) or ""
    return ResolvedComponent(
        key=component.key, name=component.name, version=version, origin=other or "image"
    )


def _other_rdma_drivers(
    choice: _Choice, versions: Mapping[str, str]
) -> Literal["image", "distribution"] | None:
    """Return who has drivers of InfiniBand and RoCE other than DOCA-OFED; None: DOCA-OFED it is.

    An image that brings them keeps them, and so does an unknown one that the spec names.
    Else the distribution's own are taken where DOCA-OFED has no packages or no known version.
    """
    need, drivers = choice.need, choice.need.rdma_drivers
    if drivers == "image" or (
        drivers == "auto" and choice.image is None and need.image is not None
    ):
        return "image" if "ofed" not in choice.brought else None
    if drivers == "auto" and "ofed" in choice.brought:
        return None
    here = choice.distribution
    packaged = bool(need.doca_for) and (here is None or here in need.doca_for)
    doca = drivers == "doca" or (drivers == "auto" and packaged and "ofed" in versions)
    return None if doca else "distribution"


def _of_set(
    component: Component, choice: _Choice, versions: Mapping[str, str]
) -> ResolvedComponent | None:
    """Return a component of the tested set; what follows the driver has its version."""
    key, tested = component.key, choice.best.tested if choice.best else None
    have = tested.versions.get(key) if tested else None
    driver = versions.get("driver") if key in WITH_DRIVER else None
    if driver is not None:
        have = longer(driver, have) if have and fits(driver, have) else driver
    elsewhere = tested is not None and choice.need.provider not in tested.providers
    if have is None or (component.part == "image" and elsewhere):
        return None
    return _component(component, have, tested, "lock")


def _of_companion(
    component: Component, choice: _Choice, versions: Mapping[str, str], lock: Lock
) -> ResolvedComponent | None:
    """Return a component that no set says: of the distribution, or what goes with the rest."""
    need = choice.need
    package = lock.slurm_package(choice.distribution)
    if component.key == need.scheduler == "slurm" and package is not None:
        return _component(component, package, None, "distribution")
    used = {choice.containers, need.plugin or "", need.vendor or "", need.scheduler or ""}
    companion = lock.companion(component.key, used, versions, choice.distribution)
    if companion is None:
        return None
    companion_row = _component(component, companion.version, None, "companion")
    return msgspec.structs.replace(companion_row, source=companion.source, date=companion.date)


def _component(
    component: Component, version: str, tested: TestedSet | None, origin: Origin
) -> ResolvedComponent:
    """Return a component; its source is named where the set has this version from elsewhere."""
    key = component.key
    have = tested.versions.get(key) if tested else None
    ours = tested is not None and have is not None and fits(version, have)
    citation = tested.sources.get(key) if tested and ours else None
    return ResolvedComponent(
        key=key,
        name=component.name,
        version=version,
        origin=origin,
        verified=origin == "distribution" or bool(tested and ours and key not in tested.unverified),
        source=citation.source if citation else "",
        date=citation.date if citation else "",
    )


def _distribution(
    wanted: Distribution | Literal["auto"], best: _Candidate | None, need: Need, lock: Lock
) -> Distribution | None:
    """Return what is requested, else what the provider's image has; None on hosts that exist."""
    if wanted != "auto":
        return wanted
    image = lock.node_image(need.provider)
    if image is None:
        return None
    tested = best.tested.distributions if best else image.distributions
    return next((d for d in tested if d in image.distributions), image.distributions[0])


def _containers(
    software: Software, best: _Candidate | None, need: Need
) -> Literal["pyxis", "none"]:
    if software.containers != "auto":
        return software.containers
    has_pyxis = best is not None and "pyxis" in best.tested.versions and need.scheduler == "slurm"
    return "pyxis" if has_pyxis else "none"


def _reason(best: _Candidate | None, fitting: int, possible: int, need: Need) -> str:
    nodes = f"nodes with {need.gpu}" if need.gpu else "nodes without a GPU"
    if need.plugin:
        nodes += f" over {need.fabric}"
    if best is None:
        return (
            f"{possible} tested sets for {nodes}, none for this distribution"
            if possible
            else f"no tested set for {nodes}"
        )
    of = "the only tested set" if fitting == 1 else f"of {fitting} tested sets"
    if best.differences:
        names = ", ".join(difference.name for difference in best.differences)
        return f"the nearest {of.removeprefix('the ')} for {nodes}; differs in {names}"
    if best.tested.capabilities:
        return f"no tested set for {nodes}; what the GPUs' maker supports together"
    where = f", tested at {need.provider}" if need.provider in best.tested.providers else ""
    return (
        f"{of} for {nodes}" if fitting == 1 else f"fits, and is the newest {of} for {nodes}{where}"
    )
