"""What a bundle's maker writes beside the packages: indexes, the manifest, their signatures."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import msgspec

from ...schemas.stack.bundle import (
    MANIFEST,
    SIGNATURE,
    Asked,
    BundledPackage,
    BundledRepository,
    BundleManifest,
)
from ...stacks.io import atomic
from ..cluster.outcome import LifecycleError
from .apt import Found
from .check import read_manifest
from .keys import BundleKey, signed_by


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution's packages, resolved."""

    distribution: str
    asked: tuple[Asked, ...]
    found: tuple[Found, ...]
    indexes: dict[str, str]
    date: str

    @property
    def folder(self) -> str:
        """Of its repository in the bundle."""
        return f"apt/{self.distribution}"


def indexed(part: Part, out: Path, key: BundleKey) -> BundledRepository:
    """Write the repository's indexes; what is unchanged and well signed keeps its signature."""
    folder = out / part.folder
    stanzas = [f"{found.stanza}Filename: pool/{found.file}\n" for found in part.found]
    packages = "\n".join(stanzas).encode()
    packed = gzip.compress(packages, mtime=0)
    lines = "".join(
        f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
        for name, content in (("Packages", packages), ("Packages.gz", packed))
    )
    release = (
        f"Origin: gcluster\nLabel: bundle\nSuite: {part.distribution}\nCodename: bundle\n"
        f"Date: {part.date}\nAcquire-By-Hash: no\nSHA256:\n{lines}"
    ).encode()
    written = folder / "InRelease"
    same = (folder / "Release").is_file() and (folder / "Release").read_bytes() == release
    for name, content in (("Packages", packages), ("Packages.gz", packed), ("Release", release)):
        atomic.write(folder / name, content, mode=0o644)
    if not (same and written.is_file() and not signed_by(key.public, key.fingerprint, written)):
        atomic.write(written, key.sign(release, detached=False), mode=0o644)
    return BundledRepository(
        distribution=part.distribution,
        path=part.folder,
        index_sha256=hashlib.sha256(packages).hexdigest(),
        resolved_from=part.indexes,
        asked=part.asked,
        packages=tuple(
            BundledPackage(
                name=found.name,
                version=found.version,
                architecture=found.architecture,
                source=found.source,
                path=f"{part.folder}/pool/{found.file}",
                size=found.size,
                sha256=found.sha256,
            )
            for found in part.found
        ),
    )


def sign(manifest: BundleManifest, out: Path, key: BundleKey) -> None:
    """Write the manifest and its signature; one that is right stays as it is."""
    content = manifest.encode()
    if (out / MANIFEST).is_file() and (out / MANIFEST).read_bytes() == content:
        try:
            read_manifest(out)
        except LifecycleError:
            pass
        else:
            return
    atomic.write(out / SIGNATURE, key.sign(content, detached=True), mode=0o644)
    atomic.write(out / MANIFEST, content, mode=0o644)


def prune(manifest: BundleManifest, out: Path) -> None:
    """Remove packages and files that the bundle no longer has."""
    kept = {p.path for r in manifest.repositories for p in r.packages}
    kept |= {file.path for file in manifest.files}
    for path in [*out.glob("apt/*/pool/*"), *(p for p in out.glob("files/**/*") if p.is_file())]:
        if str(path.relative_to(out)) not in kept:
            path.unlink()
