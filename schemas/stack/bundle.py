"""Manifests of bundles: packages and files that nodes take instead of the sources."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from ..structure.decoding import decode_json

KUBERNETES_FORMAT: Final = "gcluster/kubernetes-bundle/v1"
IMAGES: Final = "images.tar"
BUNDLES: Final = "kubernetes"
"""Folder of this machine's cache with the bundles built here, each below its key."""
NODE_FOLDER: Final = "/srv/gcluster/kubernetes"
"""Where local nodes see that folder, read-only."""
BUNDLED: Final = "files/kubernetes"
"""Folder of a spec's bundle with all of this."""
MORE_IMAGES: Final = "more-images.tar"
"""Next to it in a spec's bundle, the images of add-ons: an OCI archive too."""

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
Inside = Annotated[str, Meta(pattern=r"^(?!/)(?!.*(^|/)\.\.?(/|$))[^\s]+$(?!\n)")]
"""A path below the bundle's folder, that leads nowhere else."""

Number = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)+(-[0-9]+)?$(?!\n)")]
"""A version without the v that some tags begin with."""


class KubernetesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of the bundle."""

    path: Inside
    size: int
    """Bytes."""
    sha256: Sha256
    programs: tuple[str, ...] = ()
    """Names that it answers to on a node; none: it is no program."""


class KubernetesImage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An image of images.tar."""

    reference: Annotated[str, Meta(pattern=r"^[^\s@]+:[^\s@:/]+$(?!\n)")]
    digest: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
    """Of the image's own manifest."""


class KubernetesBundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole bundle. What it was made from gives the same bytes again."""

    format: Literal["gcluster/kubernetes-bundle/v1"] = KUBERNETES_FORMAT
    made_from: Literal["modules", "release"]
    """modules: compiled from the Go modules; release: the project's own published files."""
    key: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$(?!\n)")]
    """Of everything it was made from."""
    architecture: Literal["amd64", "arm64"]
    kubernetes: Number
    etcd: Number
    """Tag of etcd's image: "3.6.5-0"."""
    coredns: Number
    pause: Number
    repository: str
    """What the names of its images begin with: "gcluster.local/k8s"."""
    files: tuple[KubernetesFile, ...]
    images: tuple[KubernetesImage, ...]

    def encode(self) -> bytes:
        """Return the bytes of manifest.json."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def is_built(self) -> bool:
        """Whether it is more than planned: the checksum of every file is known."""
        return all(file.sha256 for file in self.files)

    def image(self, name: str) -> str:
        """Return the reference of an image by the last part of its name.

        Raises:
            KeyError: the bundle has none of that name.
        """
        found = (i.reference for i in self.images if _last(i.reference) == name)
        reference = next(found, None)
        if reference is None:
            raise KeyError(name)
        return reference


def _last(reference: str) -> str:
    return reference.rpartition("/")[2].partition(":")[0]


def decode_kubernetes(content: bytes) -> KubernetesBundle:
    """Read a manifest.

    Raises:
        msgspec.ValidationError: it isn't one, or of a newer format.
    """
    return decode_json(content, KubernetesBundle)


FORMAT: Final = "gcluster/bundle/v1"
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.json.asc"


class RoleNeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """Something that a role installs, as the role says it."""

    role: str
    what: str
    """A package, with =VERSION where it is pinned; or SOURCE/PATH of a file."""


class BundledPackage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A package of one repository of the bundle."""

    name: str
    version: str
    architecture: str
    source: str
    """Artefact source it was taken from; the distribution's own name for its own."""
    path: Inside
    size: int
    """Bytes."""
    sha256: Sha256
    """As the source's signed index says it."""


class BundledRepository(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The packages for one distribution."""

    distribution: str
    path: Inside
    index_sha256: Sha256
    """Of its file Packages."""
    resolved_from: dict[str, Sha256]
    """URL of each signed index that versions were resolved from -> SHA-256 of it."""
    requested: tuple[RoleNeed, ...]
    packages: tuple[BundledPackage, ...]


class BundledFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A tarball or another file that is no package."""

    source: str
    role: str
    url: str
    """Where it was taken from."""
    path: Inside
    size: int
    sha256: Sha256


class BundledImage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A container image by its digest."""

    role: str
    reference: Annotated[str, Meta(pattern=r"^[^\s@]+@sha256:[0-9a-f]{64}$(?!\n)")]
    archive: Inside | None = None
    """File of the bundle that holds it; None: nodes pull it."""


class BundleManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole bundle. The same spec, mirrors and key give the same bytes."""

    format: Literal["gcluster/bundle/v1"] = FORMAT
    cluster: str
    only: tuple[str, ...] = ()
    """Roles it was limited to; none: all that the spec needs."""
    key_fingerprint: Annotated[str, Meta(pattern=r"^[0-9A-F]{40}$(?!\n)")]
    key: str
    """Public half of the key that signs manifest and repositories, in ASCII armour."""
    repositories: tuple[BundledRepository, ...] = ()
    files: tuple[BundledFile, ...] = ()
    images: tuple[BundledImage, ...] = ()
    kubernetes: KubernetesBundle | None = None
    """What files/kubernetes/ has; None: nothing of Kubernetes."""

    def encode(self) -> bytes:
        """Return the bytes of manifest.json."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    def repository(self, distribution: str) -> BundledRepository | None:
        """Return the repository of a distribution."""
        found = (r for r in self.repositories if r.distribution == distribution)
        return next(found, None)

    @property
    def size(self) -> int:
        """Bytes of all packages and files."""
        packages = sum(p.size for r in self.repositories for p in r.packages)
        return packages + sum(file.size for file in self.files)


def decode(content: bytes) -> BundleManifest:
    """Read a manifest.

    Raises:
        msgspec.ValidationError: it isn't one, or of a newer format.
    """
    return decode_json(content, BundleManifest)
