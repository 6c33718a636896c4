"""Resolve what a pool asks for to a set of versions, by the rules of the lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from ..catalog import Machine
from ..spec import Software
from .lock import (
    Component,
    Distribution,
    Evidence,
    Lock,
    Need,
    SchedulerType,
    TestedSet,
    fits,
    longer,
    need_of,
    older,
    release,
)

if TYPE_CHECKING:
    from .lock import Equal, Lock, Minimum, Need, Skew, When

Origin: TypeAlias = Literal["asked", "lock", "cluster", "distribution"]
"""asked: the spec says it; lock: of the set; cluster: the same on all pools; distribution: of its
own packages."""


PREINSTALLED = "preinstalled"
"""Written for a version: the nodes bring the component, and nothing of it is installed."""
_WITH_DRIVER = frozenset({"fabric_manager", "imex"})

Install: TypeAlias = Literal["", "built", "distribution"]
"""Of Slurm: whether the cluster builds its packages or takes the distribution's own."""


class ResolvedComponent(msgspec.Struct, frozen=True, kw_only=True):
    """A component and its version."""

    key: str
    name: str
    version: str
    origin: Origin
    verified: bool = True
    """False: the set's evidence doesn't say this version together with the others."""
    source: str = ""
    """Where the version comes from, when not from the set's evidence."""
    install: Install = ""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A component that the spec wants otherwise than the nearest set has it."""

    key: str
    name: str
    asked: str
    tested: str


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The software of a pool's nodes. Equal input gives an equal value."""

    set: str | None
    """The tested set that fits, else the nearest; None: no set was tested on such nodes."""
    tested: bool
    """Whether every version is one of the set."""
    reason: str
    """Why this set, in one sentence."""
    distribution: Distribution | None = None
    """None: what the hosts or the image have."""
    containers: Literal["pyxis", "none"] = "none"
    components: tuple[ResolvedComponent, ...] = ()
    differences: tuple[Difference, ...] = ()
    packages: tuple[str, ...] = ()
    """Packages that the GPUs need beside these, in whatever version fits: nvlsm."""
    evidence: Evidence | None = None

    @property
    def versions(self) -> dict[str, str]:
        """Every version the nodes get, by component."""
        return {c.key: c.version for c in self.components if c.version}

    def version(self, key: str) -> str | None:
        """Return a component's version; None when nothing says it."""
        return self.versions.get(key)


def broken_minimums(versions: Mapping[str, str], need: Need, lock: Lock) -> tuple[Minimum, ...]:
    """Return the minimums that these versions don't reach on such nodes."""
    return tuple(
        minimum
        for minimum in lock.minimums
        if minimum.component in versions
        and _applies(minimum.when, versions, need, lock)
        and need.uses(lock.component(minimum.component).part)
        and older(versions[minimum.component], minimum.at_least)
    )


def _applies(when: When, versions: Mapping[str, str], need: Need, lock: Lock) -> bool:
    if when.gpu is not None:
        return when.gpu == need.gpu
    return need.uses(lock.component(when.component or "").part) and when.holds(versions)


def broken_equals(versions: Mapping[str, str], need: Need, lock: Lock) -> tuple[Equal, ...]:
    """Return the pairs that differ though they must not, where the nodes certainly have both."""
    if need.nvswitch is not True:
        return ()
    return tuple(
        equal
        for equal in lock.equals
        if equal.component in versions
        and equal.to in versions
        and not fits(versions[equal.component], versions[equal.to])
    )


def package_name(lock: Lock, component: str, version: str) -> str | None:
    """Return the package of a component at a version; None when no rule says it."""
    for package in lock.packages:
        if package.component != component:
            continue
        if package.below is None or older(version, package.below):
            return package.name.format(branch=version.partition(".")[0])
    return None


def kernel_series(lock: Lock, component: str, provider: str, distribution: str) -> tuple[str, ...]:
    """Return the kernels a component has modules for; empty: not known."""
    for kernels in lock.kernels:
        if (kernels.component, kernels.provider, kernels.distribution) == (
            component,
            provider,
            distribution,
        ):
            return tuple(kernels.series)
    return ()


def behind(skew: Skew, node: str, control: str) -> int | None:
    """Return how many releases a node is behind the control plane, negative when ahead.

    None when a version doesn't say its release, or the release isn't known.
    """
    mine, its = release(node), release(control)
    if mine is None or its is None:
        return None
    if skew.releases:
        if mine not in skew.releases or its not in skew.releases:
            return None
        return skew.releases.index(its) - skew.releases.index(mine)
    (node_major, node_minor), (major, minor) = (_numbers(mine), _numbers(its))
    return minor - node_minor if major == node_major else None


def window(skew: Skew, control: str) -> int:
    """Return how many releases nodes may be behind a control plane of this version."""
    reached = [w.behind for w in skew.windows if w.from_ is None or not older(control, w.from_)]
    return reached[-1] if reached else skew.windows[0].behind


def _numbers(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor) if minor.isdigit() else -1


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


_NO_VERSIONS = frozenset({"distribution", "containers", "sources"})


def asked_versions(software: Software) -> dict[str, str]:
    """Return the versions that are written, by component."""
    given = msgspec.structs.asdict(software)
    return {
        key: version
        for key, version in given.items()
        if version not in {"auto", PREINSTALLED, "distribution"} and key not in _NO_VERSIONS
    }


def preinstalled(software: Software) -> frozenset[str]:
    """Return the components that the nodes bring; what follows the driver is among them."""
    given = msgspec.structs.asdict(software)
    found = {key for key, version in given.items() if version == PREINSTALLED}
    return frozenset(found | _WITH_DRIVER if "driver" in found else found)


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
        components=_components(
            best,
            asked,
            need,
            lock,
            distribution,
            containers=containers,
            brought=preinstalled(software),
        ),
        differences=best.differences if best else (),
        packages=()
        if software.driver == PREINSTALLED
        else tuple(n.package for n in lock.needs if n.gpu == need.gpu),
        evidence=best.tested.evidence if best else None,
    )


def _was_tested_on(tested: TestedSet, need: Need) -> bool:
    """Say whether a set is of such GPUs, processors and fabric plugin."""
    if tested.capabilities:
        here = need.architecture in {None, *tested.architectures}
        runs = need.scheduler is None or tested.scheduler in {None, need.scheduler}
        return here and runs and need.capability in tested.capabilities
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
    broken = len(broken_minimums(versions, need, lock))
    general = bool(tested.capabilities)
    rank = (int(general), len(differences), broken, unsaid, int(elsewhere))
    return _Candidate(tested=tested, differences=differences, versions=versions, rank=rank)


def _components(
    best: _Candidate | None,
    asked: dict[str, str],
    need: Need,
    lock: Lock,
    distribution: Distribution | None,
    *,
    containers: str,
    brought: frozenset[str],
) -> tuple[ResolvedComponent, ...]:
    """Return every component the nodes use and don't bring, in the lock's order."""
    tested = best.tested if best else None
    used = {containers, need.plugin or ""}
    if need.scheduler != "kubernetes" and "driver" in {
        *asked,
        *(tested.versions if tested else ()),
    }:
        used.add(need.vendor or "")
    said = {**(tested.versions if tested else {}), **asked}
    equal = _equal_versions(best, asked, lock)
    package = lock.slurm_package(distribution)
    found = []
    for component in lock.components:
        key = component.key
        have = tested.versions.get(key) if tested else None
        foreign = component.part == "image" and tested and need.provider not in tested.providers
        if key in brought or not need.uses(component.part):
            continue
        if key in asked:
            version = longer(asked[key], have) if have and fits(asked[key], have) else asked[key]
            found.append(_component(component, version, tested, "asked"))
        elif have is not None and not foreign:
            found.append(_component(component, equal.get(key, have), tested, "lock"))
        elif key == need.scheduler == "slurm" and package is not None:
            found.append(_component(component, package, None, "distribution"))
        elif (companion := lock.companion(key, used, said)) is not None:
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
    if best.tested.capabilities:
        return f"no tested set for {nodes}; what the GPUs' maker supports together"
    where = f", tested at {need.provider}" if need.provider in best.tested.providers else ""
    return (
        f"{of} for {nodes}" if fitting == 1 else f"fits, and is the newest {of} for {nodes}{where}"
    )
