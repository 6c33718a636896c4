"""Add-ons of Kubernetes in a bundle: charts and manifests, and a catalog file with every digest.

The catalog file alone is what `gcluster bundle --digests` writes.

`up` runs pinned images only (GC619). What is pinned already must match; the rest is fetched in its
current version, whose digest is written to the file of digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...inventory.compile.kubernetes_objects.addons import ChosenAddon, chosen_addons
from ...schemas.catalog import Addon, Catalog, load_catalog
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.load import load
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ...schemas.stack.bundle import (
    BUNDLED,
    MANIFEST,
    MORE_IMAGES,
    BundledFile,
    BundledImage,
    BundleManifest,
    decode,
)
from ...schemas.structure.decoding import decode_yaml
from ...stacks.io import atomic
from ...stacks.registry import provider
from ..cluster.cluster import SpecError
from ..cluster.open_site import inventory
from ..cluster.outcome import LifecycleError, failure
from ..cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ..kubernetes.addons.artefact import Get, file_name, published
from ..kubernetes.addons.helm import find_helm
from ..kubernetes.addons.notes import BundledImages
from ..kubernetes.addons.rendering import rendered
from ..kubernetes.objects import ObjectKey, desired_objects
from ..kubernetes.release.image_archive import ArchivedImage, full_name, write_archive
from ..kubernetes.release.registry import digest_of, pull_pinned
from ..planning.preflight.offline import CATALOG
from .fetch import is_complete, sha256_of
from .kubernetes import RequiredKubernetes

FOLDER = CATALOG.rpartition("/")[0]
_SOURCE = "addons"


class RequiredAddons(msgspec.Struct, frozen=True, kw_only=True):
    """The add-ons that a spec needs or names, and what they are rendered for."""

    chosen: tuple[ChosenAddon, ...] = ()
    cluster: str = ""
    release: str = ""
    """Of Kubernetes: "1.35"."""
    compiled: frozenset[ObjectKey] = frozenset()
    """Objects that gcluster makes itself."""

    def refuse_unrendered(self) -> None:
        """Refuse charts where nothing renders them: only rendered do they name their images.

        Raises:
            LifecycleError: GC1061.
        """
        if any(one.addon.kind == "helm" for one in self.chosen):
            find_helm()


def addons_of(spec: ClusterSpec, catalog: Catalog) -> RequiredAddons:
    """Return the add-ons that a spec needs or names; none where Kubernetes isn't its scheduler.

    What `up` leaves out isn't needed.
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return RequiredAddons()
    planned = [
        host
        for name, site in spec.sites.items()
        for host in provider(site.provider, catalog).planned_hosts(spec, name)
    ]
    found = desired_objects(spec, inventory(spec, planned), catalog)
    return RequiredAddons(
        chosen=tuple(chosen_addons(found.facts)),
        cluster=spec.name,
        release=found.facts.release,
        compiled=frozenset(found.objects),
    )


def bundle_addons(
    requested: RequiredAddons, out: Path, report: Reporter, get: Get
) -> tuple[BundledFile, ...]:
    """Fetch add-ons into a bundle, write their digests, and return what the bundle holds of them.

    Each is rendered with the spec's values: images that its pods start are pinned in addition to
    those of the catalog.

    Args:
        requested: the add-ons to fetch; empty: nothing is fetched or written.
        out: the bundle's folder.
        report: receives an event for each.
        get: returns the content of a URL.

    Raises:
        LifecycleError: GC939, one for each that is not available or differs from its pin; GC1061,
            GC1062: one can't be rendered.
    """
    if not requested.chosen:
        return ()
    found = resolved(requested, report, get)
    files = [
        _written(out, f"{FOLDER}/{file_name(addon)}", content, addon.repository)
        for content, addon in found
    ]
    files.append(_written(out, CATALOG, _catalog(found), "gcluster bundle"))
    return tuple(files)


def lock_addons(spec_path: Path, file: Path, report: Reporter, get: Get) -> tuple[Addon, ...]:
    """Write a catalog file with every digest of the add-ons that a spec needs, and nothing else.

    What is pinned already, by the catalog or by this file, has to be what publishers have now.

    Args:
        spec_path: the spec.
        file: the catalog file; replaced whole.
        report: receives an event for each add-on.
        get: returns the content of a URL.

    Returns:
        The add-ons with their digests; (): the spec needs none, and nothing was written.

    Raises:
        SpecError: the spec is wrong.
        LifecycleError: as `bundle_addons` has it. Nothing was written.
    """
    loaded = load(spec_path)
    if loaded.spec is None:
        raise SpecError(loaded)
    requested = addons_of(loaded.spec, load_catalog(loaded.catalogs))
    if not requested.chosen:
        return ()
    requested.refuse_unrendered()
    found = resolved(requested, report, get)
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(file, _catalog(found), mode=0o644)
    return tuple(addon for _, addon in found)


def resolved(
    requested: RequiredAddons, report: Reporter, get: Get
) -> tuple[tuple[bytes, Addon], ...]:
    """Return the chart or manifest of each add-on, and the add-on with every digest.

    Raises:
        LifecycleError: GC939, one for each that is not available or differs from its pin; GC1061,
            GC1062: one can't be rendered.
    """
    total = len(requested.chosen)
    report(StageStarted(name="add-ons", total=total))
    found: list[tuple[bytes, Addon]] = []
    findings: list[Diagnostic] = []
    for done, one in enumerate(requested.chosen):
        report(StageProgress(name="add-ons", done=done, total=total, detail=one.addon.name))
        try:
            found.append(_fetched(one, requested, get))
        except LifecycleError as error:
            findings += error.diagnostics
    report(StageFinished(name="add-ons", ok=not findings, summary=f"{len(found)}", seconds=0.0))
    if findings:
        raise LifecycleError(*findings)
    return tuple(found)


def _catalog(found: tuple[tuple[bytes, Addon], ...]) -> bytes:
    """Return a catalog file with add-ons."""
    addons = msgspec.to_builtins([addon for _, addon in found])
    return msgspec.yaml.encode({"apiVersion": "gcluster/catalog/v1", "addons": addons})


def pinned_images(out: Path) -> dict[str, str]:
    """Return image -> digest of the add-ons in a bundle, from its catalog file."""
    document = decode_yaml((out / CATALOG).read_bytes(), dict[str, Any])
    return {
        full_name(image): digest
        for addon in document["addons"]
        for image, digest in addon["images"].items()
    }


def addons_missing(
    manifest: BundleManifest, requested: RequiredAddons, held: BundledImages | None, command: str
) -> Iterator[Diagnostic]:
    """Yield what a bundle lacks of add-ons: charts and manifests, and images that are pinned.

    Args:
        manifest: of the bundle.
        requested: the add-ons that the spec needs.
        held: the images that it has; None: nodes take images from registries.
        command: the command that completes the bundle.
    """
    files = {file.path for file in manifest.files}
    for one in requested.chosen:
        addon = one.addon
        path = f"{FOLDER}/{file_name(addon)}"
        if path not in files:
            yield Diagnostic(
                code="GC937",
                severity=Severity.ERROR,
                summary=f"the bundle has no {path}, which add-on {addon.name} is made of",
                hint=f"where its publisher is: {command}; nothing was changed",
            )
        if held is not None:
            pinned = [f"{image}@{digest}" for image, digest in addon.images.items() if digest]
            yield from held.lacking(addon.name, pinned)


def _fetched(one: ChosenAddon, requested: RequiredAddons, get: Get) -> tuple[bytes, Addon]:
    """Return an add-on's chart or manifest, and the add-on with every digest."""
    addon = one.addon
    content = published(addon, get)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if addon.digest not in {None, digest}:
        raise failure(
            "GC939", f"add-on {addon.name} {addon.version} is {digest}, not {addon.digest}"
        )
    made = rendered(one, content, requested.cluster, requested.release, requested.compiled)
    known = {full_name(name) for name in addon.images}
    images = dict(addon.images)
    for image in made.images:
        name, _, written_digest = image.partition("@")
        if full_name(name) not in known:
            images[full_name(name)] = written_digest or None
    pinned = {
        name: written_digest or digest_of(full_name(name))
        for name, written_digest in images.items()
    }
    return content, msgspec.structs.replace(addon, digest=digest, images=pinned)


def _written(out: Path, path: str, content: bytes, url: str) -> BundledFile:
    (out / path).parent.mkdir(parents=True, exist_ok=True)
    atomic.write(out / path, content, mode=0o644)
    return BundledFile(
        source=_SOURCE,
        role="kubernetes",
        url=url,
        path=path,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


_ROLE = "kubernetes"
_STAGE = "images of add-ons"


def bundle_images(
    requested: RequiredKubernetes | None, addons: Mapping[str, str], out: Path, report: Reporter
) -> tuple[tuple[BundledImage, ...], tuple[BundledFile, ...]]:
    """Put images into a bundle's archive; an archive with exactly these is left as it is.

    Args:
        requested: what nodes need of Kubernetes; None: nothing from the bundle, and no images.
        addons: name and tag of each image of an add-on -> its pinned digest.
        out: the bundle's folder.
        report: receives an event for each.

    Raises:
        LifecycleError: GC939, one for each that is not available or differs from its pin.
    """
    images = {} if requested is None else requested.images | dict(addons)
    if requested is None or not images:
        return (), ()
    (architecture,) = requested.architectures
    path = f"{BUNDLED}/{MORE_IMAGES}"
    wanted = tuple(
        BundledImage(role=_ROLE, reference=f"{name}@{digest}", archive=path)
        for name, digest in sorted(images.items())
    )
    kept = _cached_archive(out, wanted, path)
    if kept is not None:
        return wanted, (kept,)
    report(StageStarted(name=_STAGE, total=len(images)))
    pulled: list[ArchivedImage] = []
    findings: list[Diagnostic] = []
    for done, (name, digest) in enumerate(sorted(images.items())):
        report(StageProgress(name=_STAGE, done=done, total=len(images), detail=name))
        try:
            pulled.append(pull_pinned(name, digest, architecture))
        except LifecycleError as error:
            findings += error.diagnostics
    report(StageFinished(name=_STAGE, ok=not findings, summary=f"{len(pulled)}", seconds=0.0))
    if findings:
        raise LifecycleError(*findings)
    target = out / path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}")
    write_archive(pulled, part)
    part.chmod(0o644)
    part.replace(target)
    file = BundledFile(
        source=_ROLE,
        role=_ROLE,
        url="registries of the images",
        path=path,
        size=target.stat().st_size,
        sha256=sha256_of(target),
    )
    return wanted, (file,)


def _cached_archive(out: Path, wanted: tuple[BundledImage, ...], path: str) -> BundledFile | None:
    """Return the archive of an earlier run, if it is whole and holds just these images."""
    try:
        before = decode((out / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    if tuple(image for image in before.images if image.archive == path) != wanted:
        return None
    file = next((file for file in before.files if file.path == path), None)
    return file if file is not None and is_complete(out / path, file.size, file.sha256) else None
