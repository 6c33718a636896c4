"""A bundle's manifest: all that a spec needs for a site without a network, and who vouches for it.

- manifest.json, manifest.json.asc: this, and its signature by the bundle's key;
- apt/DISTRIBUTION/: a flat apt repository, signed by the same key;
- files/SOURCE/PATH: tarballs and other files, as their sources have them;
- files/kubernetes/: Kubernetes' own programs, its images, and the images of add-ons.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from .decoding import decode_json
from .kubernetes_bundle import Inside, KubernetesBundle, Sha256

FORMAT: Final = "gcluster/bundle/v1"
MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.json.asc"


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
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
    asked: tuple[Asked, ...]
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
