"""`gcluster bundle`: everything that a spec needs, resolved, fetched, indexed and signed."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec

from ...schemas.catalog import Catalog, load_catalog
from ...schemas.load import load
from ...schemas.stack.bundle import (
    MANIFEST,
    SIGNATURE,
    BundledFile,
    BundledImage,
    BundledPackage,
    BundledRepository,
    BundleManifest,
    RoleNeed,
)
from ...stacks.io import atomic
from ..cluster import places
from ..cluster.cluster import SpecError
from ..cluster.outcome import Exit, LifecycleError, failure
from ..cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ..kubernetes.release.registry import fetched as fetched_url
from ..planning.preflight.offline import CATALOG
from .addons import (
    RequiredAddons,
    addons_of,
    bundle_addons,
    bundle_images,
    pinned_images,
)
from .apt import AptRoot, Found
from .check import read_manifest
from .fetch import INCOMING, RequiredFile, fetch_all
from .keys import BundleKey, signed_by
from .kubernetes import bundle_kubernetes
from .requirements import (
    PoolNeeds,
    kubernetes_of,
    needs_of,
    refuse_built_slurm,
    refuse_unclear,
)


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of `gcluster bundle` made."""

    out: str
    key_fingerprint: str
    packages: int
    files: int
    size: int
    """Bytes of the whole bundle."""
    fetched: int
    """Bytes that this run fetched."""
    catalog: str = ""
    """Catalog file with the digests of Kubernetes' add-ons; "": there are none."""


def collect(spec_path: Path, out: Path, only: tuple[str, ...], report: Reporter) -> Collected:
    """Collect all that a spec needs into `out`; safe to interrupt and to repeat.

    Args:
        spec_path: the spec.
        out: a folder that is new, empty, or a bundle.
        only: roles to limit it to.
        report: receives an event for every file.

    Raises:
        LifecycleError: the spec is wrong, `out` holds other files, or something can't be collected;
            each is named. What was fetched stays.
    """
    loaded = load(spec_path)
    if loaded.spec is None:
        raise SpecError(loaded)
    _refuse_foreign(out)
    catalog = load_catalog(loaded.catalogs)
    if not only or {"slurm", "slurmdbd"}.intersection(only):
        refuse_built_slurm(loaded.spec, catalog)
    needs = needs_of(loaded.spec, catalog, only)
    with_kubernetes = not only or "kubernetes" in only
    kubernetes = kubernetes_of(loaded.spec, catalog) if with_kubernetes else None
    refuse_unclear(needs, catalog, only, kubernetes)
    required_addons = RequiredAddons() if only else addons_of(loaded.spec, catalog)
    required_addons.refuse_unrendered()
    key = BundleKey(
        places.config_home() / "keys" / f"bundle-{loaded.spec.name}.asc", loaded.spec.name
    )
    parts = _resolved(needs, report)
    files = _files(needs, catalog, loaded.spec.software.sources)
    wanted = [w for part in parts for w in _packages(part)] + [w for _, w in files]
    fetched = _fetch(wanted, out, report)
    programs, files_of_kubernetes = bundle_kubernetes(kubernetes, out, report)
    addons = bundle_addons(required_addons, out, report, fetched_url)
    run_by_addons = pinned_images(out) if addons else {}
    images, archives = bundle_images(kubernetes, run_by_addons, out, report)
    repositories = tuple(indexed(part, out, key) for part in parts)
    manifest = BundleManifest(
        cluster=loaded.spec.name,
        only=only,
        key_fingerprint=key.fingerprint,
        key=key.public,
        repositories=repositories,
        files=(
            *(
                msgspec.structs.replace(file, size=(out / file.path).stat().st_size)
                for file, _ in files
            ),
            *files_of_kubernetes,
            *archives,
            *addons,
        ),
        images=(
            *(
                BundledImage(role=image.role, reference=image.what)
                for image in sorted({image for pool in needs for image in pool.images})
            ),
            *images,
        ),
        kubernetes=programs,
    )
    sign(manifest, out, key)
    prune(manifest, out)
    return Collected(
        out=str(out),
        key_fingerprint=key.fingerprint,
        packages=sum(len(r.packages) for r in repositories),
        files=len(manifest.files),
        size=manifest.size,
        fetched=fetched,
        catalog=str(out / CATALOG) if addons else "",
    )


def _refuse_foreign(out: Path) -> None:
    """Let a folder pass that is ours to write into."""
    ours = {MANIFEST, SIGNATURE, INCOMING, "apt", "files"}
    if (out.exists() and not out.is_dir()) or (
        out.is_dir() and any(path.name not in ours for path in out.iterdir())
    ):
        raise failure(
            "GC944",
            f"{out} is not empty and is no bundle",
            hint="name an empty or a new folder",
            exit_code=Exit.USAGE,
        )


def _resolved(needs: list[PoolNeeds], report: Reporter) -> list[Part]:
    """Resolve each pool's packages in one transaction, as its nodes would install them."""
    began = time.monotonic()
    report(StageStarted(name="resolve", total=len(needs)))
    cache = places.private_directory(places.cache_home()) / "bundle"
    roots: dict[str, AptRoot] = {}
    known: dict[tuple[str, tuple[RoleNeed, ...]], list[Found]] = {}
    requested: dict[str, set[RoleNeed]] = {}
    found: dict[str, dict[str, Found]] = {}
    for done, pool in enumerate(needs, start=1):
        distribution = pool.distribution or ""
        sources = sorted(r["name"] + r["url"] for r in pool.repositories)
        which = hashlib.sha256(
            msgspec.json.encode([distribution, pool.architecture, sources])
        ).hexdigest()[:12]
        if which not in roots:
            roots[which] = AptRoot(cache / which, distribution, pool.architecture)
            roots[which].read_indexes(pool.repositories, cache / which / "keys")
        if (which, pool.packages) not in known:
            names = [a.what for a in pool.packages]
            known[which, pool.packages] = roots[which].resolved(names)
        requested.setdefault(distribution, set()).update(pool.packages)
        found.setdefault(distribution, {}).update(
            {package.file: package for package in known[which, pool.packages]}
        )
        report(StageProgress(name="resolve", done=done, total=len(needs), detail=pool.pool))
    parts = [
        Part(
            distribution=name,
            requested=tuple(sorted(requested[name])),
            found=tuple(package for _, package in sorted(found[name].items())),
            indexes=dict(
                sorted(
                    i for r in roots.values() if r.distribution == name for i in r.indexes().items()
                )
            ),
            date=next(r.date() for r in roots.values() if r.distribution == name),
        )
        for name in sorted(found)
    ]
    summary = ", ".join(f"{len(part.found)} packages for {part.distribution}" for part in parts)
    seconds = time.monotonic() - began
    report(StageFinished(name="resolve", ok=True, summary=summary, seconds=seconds))
    return parts


def _packages(part: Part) -> list[RequiredFile]:
    roles: dict[str, str] = {}
    for requested in part.requested:
        name = requested.what.split("=")[0]
        roles[name] = f"{roles[name]}, {requested.role}" if name in roles else requested.role
    return [
        RequiredFile(
            url=found.url,
            path=f"{part.folder}/pool/{found.file}",
            size=found.size,
            sha256=found.sha256,
            roles=roles.get(found.name, "another package"),
        )
        for found in part.found
    ]


def _files(
    needs: list[PoolNeeds], catalog: Catalog, redirects: dict[str, Any]
) -> list[tuple[BundledFile, RequiredFile]]:
    """Return the files that roles download, and where they come from now."""
    found = []
    for file in sorted({file for pool in needs for file in pool.files}):
        redirect = redirects.get(file.source)
        root = redirect.url if redirect is not None and redirect.url else None
        url = f"{(root or catalog.sources[file.source].url).rstrip('/')}/{file.path}"
        path, sha256 = f"files/{file.source}/{file.path}", file.checksum.removeprefix("sha256:")
        found.append(
            (
                BundledFile(
                    source=file.source, role=file.role, url=url, path=path, size=0, sha256=sha256
                ),
                RequiredFile(url=url, path=path, size=None, sha256=sha256, roles=file.role),
            )
        )
    return found


def _fetch(wanted: list[RequiredFile], out: Path, report: Reporter) -> int:
    began = time.monotonic()
    report(StageStarted(name="fetch", total=len(wanted)))

    def emit(done: int, total: int, detail: str) -> None:
        report(StageProgress(name="fetch", done=done, total=total, detail=detail))

    out.mkdir(parents=True, exist_ok=True)
    fetched, findings = fetch_all(wanted, out, emit)
    summary = f"{fetched / 1e6:.1f} MB fetched, {len(wanted) - len(findings)}/{len(wanted)} there"
    seconds = time.monotonic() - began
    report(StageFinished(name="fetch", ok=not findings, summary=summary, seconds=seconds))
    if findings:
        raise LifecycleError(*findings)
    shutil.rmtree(out / INCOMING, ignore_errors=True)
    return fetched


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution's packages, resolved."""

    distribution: str
    requested: tuple[RoleNeed, ...]
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
        requested=part.requested,
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
