"""Artefact sources and add-ons of Kubernetes."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from ...spec.model import Fingerprint, SpecModel
from .machine import Citation, Date, Source

RelativePath: TypeAlias = Annotated[str, Meta(pattern=r"^[^/\s][^\s]*$(?!\n)")]
"""A path below the source's URL."""


class Repository(SpecModel, frozen=True):
    """The packages that a source has for one distribution and architecture.

    `{version}` in its path is replaced by the version of the component that the source carries,
    `{minor}` for its first two numbers.
    """

    distribution: Annotated[
        str, Meta(pattern=r"^(debian-1[23]|ubuntu-2[24]\.04|el-9)$(?!\n)", examples=["el-9"])
    ]
    """Distribution it is made for, as `software.distribution`."""
    path: RelativePath
    """Below the source's URL; {version}: of the component, where the repository has one each."""
    architecture: Annotated[str, Meta(pattern=r"^(x86_64|aarch64)$(?!\n)")] | None = None
    """None: it has all."""
    suite: str = "/"
    """apt: the path under dists/; ending in a slash: a flat repository."""
    components: list[str] = field(default_factory=list)
    """apt: none for a flat repository."""
    key_path: RelativePath | None = None
    """Key that signs it, where it isn't the source's."""
    key_fingerprint: Fingerprint | None = None
    """Of that key; None: the source's."""


class File(SpecModel, frozen=True):
    """A tarball or another file of a source."""

    name: str
    """What roles call it."""
    path: RelativePath
    """Below the source's URL; {version}, {arch} (x86_64, aarch64) and {deb_arch} (amd64, arm64)."""
    checksums: dict[str, Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]] = field(
        default_factory=dict
    )
    """SHA-256 by the path with everything filled in."""
    signature_path: RelativePath | None = None
    """Detached signature by the source's key."""


class ArtefactSource(SpecModel, frozen=True):
    """A source of packages, files or images."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]*$(?!\n)")]
    """As `software.sources` names it."""
    description: Annotated[str, Meta(min_length=1)]
    """Whose it is and what it has, in a line."""
    url: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]*://[^\s]*[^/\s]$(?!\n)")]
    """Root of everything in it: a mirror with the same paths below can replace it."""
    source: Source
    date: Date
    component: str | None = None
    """Component of the software lock whose version replaces {version}."""
    versions: dict[str, str] = field(default_factory=dict)
    """Version of that component -> the source's own, where it counts differently."""
    pinned: str | None = None
    """Version that is installed, where the software lock has no component for it."""
    key_path: RelativePath | None = None
    """The signing key's file below the URL."""
    key_url: Annotated[str, Meta(pattern=r"^https://[^\s]+$(?!\n)")] | None = None
    """The signing key's file, where it lies elsewhere."""
    key_fingerprint: Fingerprint | None = None
    """Of the signing key; None: not known, so that nothing is taken until the spec says it."""
    signs_index: bool = True
    """dnf: whether the repository's index is signed, not only its packages."""
    packages: list[str] = field(default_factory=list)
    """apt: names, with *, that are taken from here first; others only if no other source
    has them."""
    repositories: list[Repository] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    """Container images below the URL, which is then a registry's."""
    image_digests: dict[str, Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]] = field(
        default_factory=dict
    )
    """Digest by IMAGE:TAG; nodes run no image without one."""
    sources: dict[str, Citation] = field(default_factory=dict)
    """Fields that come from elsewhere, by dotted path."""
    unverified: list[str] = field(default_factory=list)
    """Fields, by dotted path, that are not confirmed."""
    note: str | None = None
    """What is not known or not certain."""

    def own_version(self, version: str) -> str:
        """Return how this source calls a version of its component."""
        return self.versions.get(version, version)


Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
"""SHA-256 of a chart's archive, a manifest's file or an image's manifest."""


class Addon(SpecModel, frozen=True, kw_only=True):
    """An add-on of the catalog."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]*$(?!\n)")]
    """As `scheduler.addons` and the folder of its values call it."""
    description: Annotated[str, Meta(min_length=1)]
    """What it brings, in a line."""
    kind: Literal["helm", "manifests"]
    """A chart with values, or files that are applied as they are."""
    repository: Annotated[str, Meta(pattern=r"^(https|oci)://[^\s]*[^/\s]$(?!\n)")]
    """Helm: the repository, or oci:// and the folder of the chart; manifests: the file itself."""
    chart: str | None = None
    """Name of the chart in its repository; None for manifests."""
    version: Annotated[str, Meta(min_length=1)]
    """Of the chart, or of what the manifest is taken from."""
    digest: Digest | None = None
    """Of the chart's archive or of the manifest; None: not known, so `up` refuses until a bundle or
    a catalog file of your own says it."""
    images: dict[str, Digest | None] = field(default_factory=dict)
    """Images that the chart is known to start -> digest; None: not known."""
    tags: dict[str, str] = field(default_factory=dict)
    """Kubernetes release -> tag of its image, where a release wants one of its own; a newer release
    gets the last."""
    namespace: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]*$(?!\n)")]
    """Where it runs."""
    privileged: bool = False
    """Its pods take the host's rights, so its namespace allows them."""
    kinds: list[str] = field(default_factory=list)
    """API groups that it brings: kueue.x-k8s.io."""
    after: list[str] = field(default_factory=list)
    """Add-ons that have to be there before it."""
    parameters: dict[str, str] = field(default_factory=dict)
    """What storage classes of its driver must say and no spec does: as the vendor's example has."""
    source: Source
    date: Date
    sources: dict[str, Citation] = field(default_factory=dict)
    """Fields whose value comes from elsewhere, by dotted path."""
    unverified: list[str] = field(default_factory=list)
    """Fields, by dotted path, that are not confirmed."""
    note: str | None = None
    """What is not known or not certain."""

    @property
    def unfilled(self) -> list[str]:
        """What of it has no digest yet: "" is the chart or manifest itself."""
        return [*([] if self.digest else [""]), *(name for name, d in self.images.items() if not d)]
