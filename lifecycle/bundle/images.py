"""Images of a bundle: those of Kubernetes' add-ons, by the digests that somebody pinned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...schemas.bundle import BUNDLED, MANIFEST, MORE_IMAGES, BundledFile, BundledImage, decode
from ...schemas.diagnostics import Diagnostic
from ..kubernetes.registry import Pulled, pull_pinned, write_pulled
from ..outcome import LifecycleError
from ..progress import Reporter, StageFinished, StageProgress, StageStarted
from .fetch import is_whole, sha256_of

if TYPE_CHECKING:
    from .kubernetes import KubernetesAsked

_ROLE = "kubernetes"
_STAGE = "images of add-ons"


def bundle_images(
    asked: KubernetesAsked | None, addons: Mapping[str, str], out: Path, report: Reporter
) -> tuple[tuple[BundledImage, ...], tuple[BundledFile, ...]]:
    """Bring images into a bundle's archive; one that has just these stays as it is.

    Args:
        asked: what nodes need of Kubernetes; None: nothing that we bring them, nor images.
        addons: name and tag of each image of an add-on -> digest that somebody pinned.
        out: the bundle's folder.
        report: told of each.

    Raises:
        LifecycleError: GC939, one for each that is not to be had or isn't what is pinned.
    """
    images = {} if asked is None else asked.images | dict(addons)
    if asked is None or not images:
        return (), ()
    (architecture,) = asked.architectures
    path = f"{BUNDLED}/{MORE_IMAGES}"
    wanted = tuple(
        BundledImage(role=_ROLE, reference=f"{name}@{digest}", archive=path)
        for name, digest in sorted(images.items())
    )
    kept = _kept(out, wanted, path)
    if kept is not None:
        return wanted, (kept,)
    report(StageStarted(name=_STAGE, total=len(images)))
    pulled: list[Pulled] = []
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
    write_pulled(pulled, part)
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


def _kept(out: Path, wanted: tuple[BundledImage, ...], path: str) -> BundledFile | None:
    """Return the archive of an earlier run, if it is whole and holds just these images."""
    try:
        before = decode((out / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    if tuple(image for image in before.images if image.archive == path) != wanted:
        return None
    file = next((file for file in before.files if file.path == path), None)
    return file if file is not None and is_whole(out / path, file.size, file.sha256) else None
