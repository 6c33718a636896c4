"""Resolve `auto`: the tested set that fits what the spec says, else the nearest one."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..catalog import Machine
from ..spec import Software
from .lock import Component, Distribution, Lock, SchedulerType, TestedSet
from .need import Need, need_of
from .resolved import Difference, Origin, Resolved, ResolvedComponent
from .rules import broken_minimums
from .versions import fits, longer


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A set that was tested on such nodes, and how it stands to what is asked."""

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


def asked_versions(software: Software) -> dict[str, str]:
    """Return the versions that are written, by component."""
    given = msgspec.structs.asdict(software)
    return {
        key: version
        for key, version in given.items()
        if version != "auto" and key not in {"distribution", "containers", "sources"}
    }


def resolve_need(software: Software, need: Need, lock: Lock) -> Resolved:
    """Return the versions that nodes with these needs get; as `resolve`."""
    parts = {component.key: component.part for component in lock.components}
    asked = {
        key: version for key, version in asked_versions(software).items() if need.uses(parts[key])
    }
    possible = [tested for tested in lock.sets if _was_tested_on(tested, need)]
    here = [t for t in possible if software.distribution in {"auto", *t.distributions}]
    ranked = [_candidate(tested, asked, need, lock) for tested in here]
    newest = sorted(ranked, key=lambda c: (c.tested.evidence.date, c.tested.name), reverse=True)
    best = min(newest, key=lambda c: c.rank, default=None)
    distribution = _distribution(software, best, need, lock)
    containers = _containers(software, best, need)
    return Resolved(
        set=best.tested.name if best else None,
        tested=best is not None and not best.differences,
        reason=_reason(best, len(here), len(possible), need),
        distribution=distribution,
        containers=containers,
        components=_components(best, asked, need, lock, distribution, containers=containers),
        differences=best.differences if best else (),
        packages=tuple(n.package for n in lock.needs if n.gpu == need.gpu),
        evidence=best.tested.evidence if best else None,
    )


def _was_tested_on(tested: TestedSet, need: Need) -> bool:
    """Say whether a set is of such GPUs, processors and fabric plugin."""
    if (need.gpu is None) != (not tested.gpus) or (need.gpu and need.gpu not in tested.gpus):
        return False
    if need.architecture is not None and need.architecture not in tested.architectures:
        return False
    if need.gpu is None and need.provider not in {None, *tested.providers}:
        return False
    if need.scheduler is not None and tested.scheduler not in {None, need.scheduler}:
        return False
    return need.plugin is None or need.fabric in tested.fabrics


def _candidate(tested: TestedSet, asked: dict[str, str], need: Need, lock: Lock) -> _Candidate:
    differences = tuple(
        Difference(
            key=key,
            name=lock.component(key).name,
            asked=version,
            tested=tested.versions[key],
        )
        for key, version in asked.items()
        if key in tested.versions and not fits(version, tested.versions[key])
    )
    versions = {**tested.versions, **asked}
    unsaid = sum(key not in tested.versions for key in asked)
    elsewhere = need.provider not in tested.providers
    rank = (len(differences), len(broken_minimums(versions, need, lock)), unsaid, int(elsewhere))
    return _Candidate(tested=tested, differences=differences, versions=versions, rank=rank)


def _components(
    best: _Candidate | None,
    asked: dict[str, str],
    need: Need,
    lock: Lock,
    distribution: Distribution | None,
    *,
    containers: str,
) -> tuple[ResolvedComponent, ...]:
    """Return every component the nodes use, in the lock's order."""
    tested = best.tested if best else None
    used = {containers, need.plugin or ""}
    equal = _equal_versions(best, asked, lock)
    package = lock.slurm_package(distribution)
    found = []
    for component in lock.components:
        key = component.key
        have = tested.versions.get(key) if tested else None
        foreign = component.part == "image" and tested and need.provider not in tested.providers
        if not need.uses(component.part):
            continue
        if key in asked:
            version = longer(asked[key], have) if have and fits(asked[key], have) else asked[key]
            found.append(_component(component, version, tested, "asked"))
        elif have is not None and not foreign:
            found.append(_component(component, equal.get(key, have), tested, "lock"))
        elif key == need.scheduler == "slurm" and package is not None:
            found.append(_component(component, package, None, "distribution"))
        elif (companion := lock.companion(key, used)) is not None:
            beside = _component(component, companion.version, None, "lock")
            found.append(msgspec.structs.replace(beside, source=companion.source))
    return tuple(found)


def _equal_versions(best: _Candidate | None, asked: dict[str, str], lock: Lock) -> dict[str, str]:
    """Return the versions that follow another one that is asked for: the fabric manager's."""
    followed: dict[str, str] = {}
    for equal in lock.equals:
        have = best.tested.versions.get(equal.component) if best else None
        if have is not None and equal.to in asked:
            to = asked[equal.to]
            followed[equal.component] = longer(to, have) if fits(to, have) else to
    return followed


def _component(
    component: Component, version: str, tested: TestedSet | None, origin: Origin
) -> ResolvedComponent:
    """Return a component; its source is told where the set has this version from elsewhere."""
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
    )


def _distribution(
    software: Software, best: _Candidate | None, need: Need, lock: Lock
) -> Distribution | None:
    """Return what is asked for, else what the provider's image has; None on hosts that exist."""
    if software.distribution != "auto":
        return software.distribution
    image = lock.node_image(need.provider)
    if image is None:
        return None
    wanted = best.tested.distributions if best else image.distributions
    return next((d for d in wanted if d in image.distributions), image.distributions[0])


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
    where = f", tested at {need.provider}" if need.provider in best.tested.providers else ""
    return (
        f"{of} for {nodes}" if fitting == 1 else f"fits, and is the newest {of} for {nodes}{where}"
    )
