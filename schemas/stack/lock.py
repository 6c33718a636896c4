"""The lock of tested software sets: its types, its file and its versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from ..catalog.load import CatalogError
from ..catalog.model.machine import Citation, Date
from ..spec.model import SpecModel
from ..structure.compose import compose
from ..structure.fit import fit

_Parts: TypeAlias = tuple[tuple[int, int, str], ...]


@lru_cache(maxsize=1024)
def parts(version: str) -> _Parts:
    """Return a version's parts in an order that compares: 24.11.5 before 24.11.10."""
    return tuple(
        (1, int(word), "") if word.isdigit() else (0, 0, word)
        for word in re.split(r"[.+~:-]", version)
    )


def fits(requested: str, version: str) -> bool:
    """Say whether two versions can be one: one is the beginning of the other, part by part."""
    mine, other = parts(requested), parts(version)
    shorter = min(len(mine), len(other))
    return mine[:shorter] == other[:shorter]


def older(version: str, least: str) -> bool:
    """Say whether a version is certainly older: 570 may be 570.133.20, 550 may not."""
    mine, other = parts(version), parts(least)
    shorter = min(len(mine), len(other))
    return mine[:shorter] < other[:shorter]


def longer(one: str, other: str) -> str:
    """Return the one of two fitting versions that says more."""
    return one if len(parts(one)) >= len(parts(other)) else other


def release(version: str, size: int = 2) -> str | None:
    """Return the release a version is of (24.11 of 24.11.5); None when it doesn't say."""
    words = re.split(r"[.+~:-]", version)
    return ".".join(words[:size]) if len(words) >= size else None


Distribution: TypeAlias = Literal["debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04", "el-9"]
SchedulerType: TypeAlias = Literal["slurm", "kubernetes", "none"]
Part: TypeAlias = Literal[
    "all", "image",
    "nvidia", "nvswitch", "nvlink-domain", "amd",
    "efa", "tcpx", "tcpxo", "gib", "gib-metal", "ofed",
    "slurm", "kubernetes",
]  # fmt: skip
"""Where a component is used. image: what the provider's image brings, taken only there. nvswitch:
NVIDIA GPUs switched within the node; nvlink-domain: an NVLink domain of several nodes."""

Exact: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9]+([.+~:-][A-Za-z0-9]+)*$(?!\n)")]
"""A version, as far as its source says it: 580.126.16, or the branch 580."""


class Component(SpecModel, frozen=True):
    """A piece of software that has a version."""

    key: str
    name: str
    part: Part
    role: str = ""
    """The role that installs it; "": none does."""
    inside: str = ""
    """Component that brings it along: the EFA installer has libfabric in it."""


class Evidence(SpecModel, frozen=True):
    """Who tested a set of versions, or runs it."""

    by: Literal["vendor", "image", "blueprint", "gcluster"]
    """A vendor's release notes, an image's manifest, a published blueprint, or gcluster's tests."""
    who: str
    what: str
    source: str
    date: Annotated[str, Meta(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}$(?!\n)")]


class TestedSet(SpecModel, frozen=True):
    """Versions that were tested together."""

    __test__ = False  # its name is no test's

    name: str
    distributions: Annotated[list[Distribution], Meta(min_length=1)]
    architectures: Annotated[list[Literal["x86_64", "aarch64"]], Meta(min_length=1)]
    versions: Annotated[dict[str, Exact], Meta(min_length=1)]
    """By the component's key."""
    evidence: Evidence
    gpus: list[str] = field(default_factory=list)
    """GPU models as in the catalog of machines; empty: nodes without a GPU."""
    capabilities: list[str] = field(default_factory=list)
    """Compute capabilities (AMD: LLVM targets) instead of models: what the GPUs' maker supports
    together on any of them, whatever the fabric. Taken where no set is of the very nodes."""
    fabrics: list[str] = field(default_factory=list)
    """Fabric classes; empty: none was tested."""
    providers: list[str] = field(default_factory=list)
    """Where it was tested; empty: the source doesn't say."""
    scheduler: SchedulerType | None = None
    """The scheduler that was tested with it; None: none."""
    sources: dict[str, Citation] = field(default_factory=dict)
    """Components whose version comes from elsewhere."""
    unverified: list[str] = field(default_factory=list)
    """Components that the evidence doesn't say together with the others."""
    note: str | None = None


class When(SpecModel, frozen=True):
    """What a rule is about: a component at a version (its beginning) or from one on, or a GPU."""

    component: str | None = None
    version: Exact | None = None
    from_: Exact | None = field(default=None, name="from")
    gpu: str | None = None

    def holds(self, versions: Mapping[str, str]) -> bool:
        """Say whether these versions, by component, are what this is about."""
        version = versions.get(self.component or "")
        if version is None:
            return False
        if self.from_ is not None:
            return not older(version, self.from_)
        return self.version is None or fits(version, self.version)


class Minimum(SpecModel, frozen=True):
    """The oldest version of a component that goes with another or with a GPU."""

    when: When
    component: str
    at_least: Exact
    source: str
    date: Date
    because: str = ""
    """What of the other component requires it."""


class Equal(SpecModel, frozen=True):
    """Two components that must have one version."""

    component: str
    to: str
    source: str
    date: Date


class RequiredPackage(SpecModel, frozen=True):
    """A package that a GPU needs in addition to its driver."""

    gpu: str
    package: str
    why: str
    source: str
    date: Date


class Kernels(SpecModel, frozen=True):
    """Kernels that a component has modules for."""

    component: str
    provider: str
    distribution: Distribution
    series: Annotated[list[Exact], Meta(min_length=1)]
    source: str
    date: Date


class NodeImage(SpecModel, frozen=True):
    """Distributions that a provider's nodes come in unless the spec names an image."""

    provider: str
    distributions: Annotated[list[Distribution], Meta(min_length=1)]
    why: str
    source: str
    date: Date


class VendorImage(SpecModel, frozen=True):
    """A machine image that brings software with it: nothing is installed over that."""

    name: str
    provider: str
    images: Annotated[str, Meta(min_length=1)]
    """Regular expression of what a spec writes for it in `image`."""
    distribution: Distribution
    architecture: Literal["x86_64", "aarch64"]
    brings: Annotated[dict[str, Exact | None], Meta(min_length=1)]
    """Version by the component's key; null: in whichever version the image has."""
    source: str
    date: Date
    vendor: Literal["nvidia", "amd"] = "nvidia"
    """Maker of the GPUs that it is made for."""
    capabilities: list[str] = field(default_factory=list)
    """Compute capabilities that its driver is for; empty: all of the maker's."""
    default: bool = False
    """Whether such nodes boot it where the spec names no image."""
    note: str | None = None


class SlurmPackage(SpecModel, frozen=True):
    """Slurm of a distribution's own packages."""

    distribution: Distribution
    version: Exact
    source: str
    date: Date


class SlurmRelease(SpecModel, frozen=True):
    """The release of Slurm that machines get where neither spec nor set says one."""

    version: Exact
    source: str
    date: Date


class Companion(SpecModel, frozen=True):
    """A version for what no tested set says, taken where a pool uses something that needs it."""

    component: str
    version: Exact
    goes_with: Annotated[
        list[Literal["pyxis", "kubernetes", "efa", "tcpx", "tcpxo", "gib", "gib-metal", "nvidia"]],
        Meta(min_length=1),
    ]
    """Job containers (pyxis), pods, fabric plugins or GPUs that need it."""
    source: str
    date: Date
    when: When | None = None
    """The version of another component that it is for; None: any."""
    distributions: list[Distribution] = field(default_factory=list)
    """Where its source has it; empty: wherever the other components are."""


class Feature(SpecModel, frozen=True):
    """Something that needs a version of a component."""

    feature: str
    component: str
    at_least: Exact
    source: str
    date: Date


class Window(SpecModel, frozen=True):
    """How many releases nodes may be behind a control plane of this release or later."""

    behind: Annotated[int, Meta(ge=0)]
    from_: Exact | None = field(default=None, name="from")


class Skew(SpecModel, frozen=True):
    """How far nodes may be behind the control plane."""

    component: str
    windows: Annotated[list[Window], Meta(min_length=1)]
    """The last one whose `from` the control plane has reached counts."""
    source: str
    date: Date
    releases: list[Exact] = field(default_factory=list)
    """Releases in order, where their numbers can't be counted."""


class Lock(SpecModel, frozen=True):
    """The software lock."""

    api_version: Literal["gcluster/stack/v1"] = field(name="apiVersion")
    components: list[Component]
    plugins: dict[str, list[str]]
    """Fabric classes by the plugin that drives them."""
    sets: list[TestedSet]
    minimums: list[Minimum] = field(default_factory=list)
    equals: list[Equal] = field(default_factory=list)
    needs: list[RequiredPackage] = field(default_factory=list)
    kernels: list[Kernels] = field(default_factory=list)
    distributions: list[NodeImage] = field(default_factory=list)
    images: list[VendorImage] = field(default_factory=list)
    slurm_packages: list[SlurmPackage] = field(default_factory=list)
    slurm_default: SlurmRelease | None = None
    companions: list[Companion] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    skews: list[Skew] = field(default_factory=list)

    def component(self, key: str) -> Component:
        """Return a component by its key; KeyError when there is none."""
        for component in self.components:
            if component.key == key:
                return component
        raise KeyError(key)

    def plugin(self, fabric: str | None) -> str | None:
        """Return the plugin that drives a fabric class; None when it needs none."""
        return next((name for name, classes in self.plugins.items() if fabric in classes), None)

    def slurm_package(self, distribution: str | None) -> str | None:
        """Return the Slurm of a distribution's packages; None when it isn't known."""
        found = (p.version for p in self.slurm_packages if p.distribution == distribution)
        return next(found, None)

    def companion(
        self,
        component: str,
        used: set[str],
        versions: Mapping[str, str],
        distribution: Distribution | None,
    ) -> Companion | None:
        """Return a component's version that goes with what is used and these; None: unknown."""
        return next(
            (
                found
                for found in self.companions
                if found.component == component
                and used & set(found.goes_with)
                and (found.when is None or found.when.holds(versions))
                and (not found.distributions or distribution in {None, *found.distributions})
            ),
            None,
        )

    def named_image(self, provider: str | None, written: str) -> VendorImage | None:
        """Return the image that a spec names; None when it isn't known what that brings."""
        return next(
            (
                image
                for image in self.images
                if image.provider == provider and re.fullmatch(image.images, written)
            ),
            None,
        )

    def image(self, name: str | None) -> VendorImage | None:
        """Return an image by its name in the lock; None for no name."""
        return next((image for image in self.images if image.name == name), None)

    def node_image(self, provider: str | None) -> NodeImage | None:
        """Return what a provider's nodes come in; None when not known or up to the hosts."""
        return next((image for image in self.distributions if image.provider == provider), None)


LOCK_FILE = Path(__file__).with_name("stack.lock.yaml")


@lru_cache(maxsize=1)
def load_lock() -> Lock:
    """Return gcluster's software lock."""
    return read_lock(LOCK_FILE.read_text(encoding="utf-8"), file=LOCK_FILE.name)


def read_lock(text: str, *, file: str) -> Lock:
    """Type a lock's text.

    Raises:
        CatalogError: the text is no lock; its diagnostics say what is wrong and where.
    """
    composed = compose(text, file=file)
    if composed.document is None:
        raise CatalogError(*composed.diagnostics)
    structured = fit(Lock, composed.document, file=file, spoilt=frozenset(composed.broken))
    if not isinstance(structured.value, Lock):
        raise CatalogError(*composed.diagnostics, *structured.diagnostics)
    return structured.value
