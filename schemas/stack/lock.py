"""The software lock: sets of versions that were tested together, and rules that cut across them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from ..catalog.citation import Citation, Date
from ..spec.noun import Noun

Distribution: TypeAlias = Literal["debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04", "el-9"]
SchedulerType: TypeAlias = Literal["slurm", "kubernetes"]
Part: TypeAlias = Literal[
    "all", "image",
    "nvidia", "nvswitch", "nvlink-domain", "amd",
    "efa", "tcpx", "tcpxo", "gib", "ofed",
    "slurm", "kubernetes",
]  # fmt: skip
"""Where a component is used. image: what the provider's image brings, taken only there. nvswitch:
NVIDIA GPUs switched within the node; nvlink-domain: an NVLink domain of several nodes."""

Exact: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9]+([.+~:-][A-Za-z0-9]+)*$(?!\n)")]
"""A version, as far as its source says it: 580.126.16, or the branch 580."""


class Component(Noun, frozen=True):
    """A piece of software that has a version."""

    key: str
    name: str
    part: Part


class Evidence(Noun, frozen=True):
    """Who tested a set of versions, or runs it."""

    by: Literal["vendor", "image", "blueprint", "gcluster"]
    """A vendor's release notes, an image's manifest, a published blueprint, or gcluster's tests."""
    who: str
    what: str
    source: str
    date: Annotated[str, Meta(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}$(?!\n)")]


class TestedSet(Noun, frozen=True):
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


class When(Noun, frozen=True):
    """What a rule is about: a component at a version (its beginning) or from one on, or a GPU."""

    component: str | None = None
    version: Exact | None = None
    from_: Exact | None = field(default=None, name="from")
    gpu: str | None = None


class Minimum(Noun, frozen=True):
    """The oldest version of a component that goes with another or with a GPU."""

    when: When
    component: str
    at_least: Exact
    source: str
    date: Date
    because: str = ""
    """What of the other component asks for it."""


class Equal(Noun, frozen=True):
    """Two components that must have one version."""

    component: str
    to: str
    source: str
    date: Date


class Need(Noun, frozen=True):
    """A package that a GPU needs beside its driver."""

    gpu: str
    package: str
    why: str
    source: str
    date: Date


class PackageName(Noun, frozen=True):
    """How a component's package is called; the first entry that covers the version counts."""

    component: str
    name: str
    """{branch} stands for the first number of the version."""
    source: str
    date: Date
    below: Exact | None = None
    unverified: bool = False
    note: str | None = None


class Kernels(Noun, frozen=True):
    """Kernels that a component has modules for."""

    component: str
    provider: str
    distribution: Distribution
    series: Annotated[list[Exact], Meta(min_length=1)]
    source: str
    date: Date


class NodeImage(Noun, frozen=True):
    """Distributions that a provider's nodes come in unless the spec names an image."""

    provider: str
    distributions: Annotated[list[Distribution], Meta(min_length=1)]
    why: str
    source: str
    date: Date


class SlurmPackage(Noun, frozen=True):
    """Slurm of a distribution's own packages."""

    distribution: Distribution
    version: Exact
    source: str
    date: Date


class Companion(Noun, frozen=True):
    """A version for what no tested set says, taken where a pool uses something that needs it."""

    component: str
    version: Exact
    beside: Annotated[list[Literal["pyxis", "tcpx", "tcpxo"]], Meta(min_length=1)]
    """Job containers (pyxis) or the fabric plugins that need it."""
    source: str
    date: Date


class Feature(Noun, frozen=True):
    """Something that needs a version of a component."""

    feature: str
    component: str
    at_least: Exact
    source: str
    date: Date


class Window(Noun, frozen=True):
    """How many releases nodes may be behind a control plane of this release or later."""

    behind: Annotated[int, Meta(ge=0)]
    from_: Exact | None = field(default=None, name="from")


class Skew(Noun, frozen=True):
    """How far nodes may be behind the control plane."""

    component: str
    windows: Annotated[list[Window], Meta(min_length=1)]
    """The last one whose `from` the control plane has reached counts."""
    source: str
    date: Date
    releases: list[Exact] = field(default_factory=list)
    """Releases in order, where their numbers can't be counted."""


class Lock(Noun, frozen=True):
    """The software lock."""

    api_version: Literal["gcluster/stack/v1"] = field(name="apiVersion")
    components: list[Component]
    plugins: dict[str, list[str]]
    """Fabric classes by the plugin that drives them."""
    sets: list[TestedSet]
    minimums: list[Minimum] = field(default_factory=list)
    equals: list[Equal] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    packages: list[PackageName] = field(default_factory=list)
    kernels: list[Kernels] = field(default_factory=list)
    distributions: list[NodeImage] = field(default_factory=list)
    slurm_packages: list[SlurmPackage] = field(default_factory=list)
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

    def companion(self, component: str, used: set[str]) -> Companion | None:
        """Return a component's version beside what of pyxis, tcpx, tcpxo is used; None: unsaid."""
        found = (c for c in self.companions if c.component == component)
        return next((c for c in found if used & set(c.beside)), None)

    def node_image(self, provider: str | None) -> NodeImage | None:
        """Return what a provider's nodes come in; None when not known or up to the hosts."""
        return next((image for image in self.distributions if image.provider == provider), None)
