"""Offline checks of a bundle: complete, correctly signed, and sufficient for a spec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...schemas.catalog import Catalog
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec
from ...schemas.stack.bundle import MANIFEST, SIGNATURE, BundleManifest, decode
from ..cluster.outcome import Exit, LifecycleError, failure
from ..kubernetes.addons.notes import bundled_images
from .addons import addons_missing, addons_of
from .fetch import is_complete
from .keys import signed_by
from .kubernetes import kubernetes_missing
from .requirements import kubernetes_of, needs_of, refuse_built_slurm


def read_manifest(bundle: Path, trusted: str | None = None) -> BundleManifest:
    """Read a bundle's manifest and check its signature; packages are not read.

    Args:
        bundle: its folder.
        trusted: fingerprint of the one key that may have signed it; None: the key it carries.

    Raises:
        LifecycleError: GC938 it is missing, unreadable or not correctly signed; GC956 another key
            signed it.
    """
    path = bundle / MANIFEST
    if not path.is_file():
        raise failure(
            "GC938",
            f"{bundle} is no bundle: it has no {MANIFEST}",
            hint=f"make one with: gcluster bundle SPEC --out {bundle}",
            exit_code=Exit.REFUSED,
        )
    try:
        manifest = decode(path.read_bytes())
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise _damaged(path, f"it can't be read: {error}") from None
    if trusted is not None and manifest.key_fingerprint != trusted.upper().replace(" ", ""):
        raise failure(
            "GC956",
            f"{bundle} is signed by {manifest.key_fingerprint}, not by the trusted {trusted}",
            hint="ask its author; nothing was changed",
            exit_code=Exit.REFUSED,
        )
    wrong = signed_by(manifest.key, manifest.key_fingerprint, bundle / SIGNATURE, path)
    if wrong:
        raise _damaged(path, wrong)
    return manifest


def check_bundle(bundle: Path, trusted: str | None = None) -> BundleManifest:
    """Check every file of a bundle; return its manifest.

    Raises:
        LifecycleError: one finding for each file that is missing, incomplete or different.
    """
    manifest = read_manifest(bundle, trusted)
    found = list(_damages(bundle, manifest))
    if found:
        raise LifecycleError(*found, exit_code=Exit.REFUSED)
    return manifest


def _damages(bundle: Path, manifest: BundleManifest) -> Iterator[Diagnostic]:
    for repository in manifest.repositories:
        folder = bundle / repository.path
        wrong = signed_by(manifest.key, manifest.key_fingerprint, folder / "InRelease")
        index = folder / "Packages"
        if wrong:
            yield _damage(folder / "InRelease", wrong)
        elif not index.is_file() or sha256(index) != repository.index_sha256:
            yield _damage(index, "it differs from the manifest")
        elif f" {repository.index_sha256} " not in (folder / "InRelease").read_text("utf-8"):
            yield _damage(folder / "InRelease", "it is of another index")
        for package in repository.packages:
            yield from _file(bundle / package.path, package.size, package.sha256)
    for file in manifest.files:
        yield from _file(bundle / file.path, file.size, file.sha256)


def _file(path: Path, size: int, wanted: str) -> Iterator[Diagnostic]:
    if not path.is_file():
        yield _damage(path, "it is missing")
    elif path.stat().st_size != size:
        yield _damage(path, f"it has {path.stat().st_size} bytes, not {size}")
    elif not is_complete(path, size, wanted):
        yield _damage(path, "its SHA-256 is another")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a small file in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _damage(path: Path, why: str) -> Diagnostic:
    return Diagnostic(
        code="GC938",
        severity=Severity.ERROR,
        summary=f"{path}: {why}",
        hint="fetch it again where the mirrors are: gcluster bundle SPEC --out DIR; "
        "nothing was changed",
    )


def _damaged(path: Path, why: str) -> LifecycleError:
    return LifecycleError(_damage(path, why), exit_code=Exit.REFUSED)


def refuse_incomplete(
    manifest: BundleManifest, spec: ClusterSpec, catalog: Catalog, command: str
) -> None:
    """Check that a bundle has all that the roles and add-ons of a spec need.

    Images of an add-on's chart that the catalog doesn't list are only known once it is rendered:
    `lifecycle.kubernetes.addons.ready` checks those.

    Args:
        manifest: of the bundle.
        spec: what is to run.
        catalog: its machines and sources.
        command: the command that completes the bundle.

    Raises:
        LifecycleError: GC937 for each package and file that is missing, with its role; GC1050,
            GC1051: it has no Kubernetes for these nodes; GC1002 for each image of an add-on.
    """
    refuse_built_slurm(spec, catalog)
    found: dict[str, Diagnostic] = {}
    for pool in needs_of(spec, catalog):
        distribution = pool.distribution or next(
            (r.distribution for r in manifest.repositories if len(manifest.repositories) == 1), ""
        )
        repository = manifest.repository(distribution)
        have = set() if repository is None else set(repository.requested)
        files = {file.path for file in manifest.files}
        missing = [(a.what, a.role) for a in pool.packages if a not in have]
        missing += [
            (f"{f.source}/{f.path}", f.role)
            for f in pool.files
            if f"files/{f.source}/{f.path}" not in files
        ]
        for what, role in missing:
            where = f" for {distribution}" if distribution else ""
            summary = (
                f"the bundle has no {what}{where}, which role {role} of pool {pool.pool} needs"
            )
            found.setdefault(
                f"{distribution} {role} {what}",
                Diagnostic(
                    code="GC937",
                    severity=Severity.ERROR,
                    summary=summary,
                    hint=f"where the mirrors are: {command}; nothing was changed",
                ),
            )
    kubernetes = kubernetes_of(spec, catalog)
    held = None if kubernetes is None else bundled_images(manifest, command)
    lacking = (
        *found.values(),
        *kubernetes_missing(manifest, kubernetes, command),
        *addons_missing(manifest, addons_of(spec, catalog), held, command),
    )
    if lacking:
        raise LifecycleError(*lacking, exit_code=Exit.REFUSED)
