"""The published part of the bundle of local nodes: the projects' own programs and images.

Nodes have the images by the names of our own builds, so nothing else depends on which it is.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ....schemas.stack.bundle import KubernetesFile
from ...cluster.progress import Reporter, StageFinished, StageStarted
from .image_archive import ArchivedImage
from .recipe import ImageRecipe, Recipe
from .registry import pull
from .release import Release, fetch_programs

_AT_ONCE = 4
"""Images pulled at the same time."""


def fetch_published(
    made_of: Recipe, architecture: str, out: Path, report: Reporter, of: Release
) -> tuple[list[KubernetesFile], list[ArchivedImage]]:
    """Fetch the programs that nodes run into `out`, and the published images.

    Args:
        made_of: the recipe.
        architecture: "amd64", "arm64".
        out: the bundle's folder, with a folder bin.
        report: receives an event for each part.
        of: where they are published.

    Raises:
        LifecycleError: GC939: something can't be had, or its checksum doesn't match.
    """
    files = fetch_programs(of.programs, made_of.kubernetes, architecture, out, report)
    return files, _images(of, made_of, architecture, report)


def _images(
    of: Release, made_of: Recipe, architecture: str, report: Reporter
) -> list[ArchivedImage]:
    began = time.monotonic()
    wanted = [image for image in made_of.images if image.published is not None]
    report(StageStarted(name="published images", total=len(wanted)))

    def pulled(image: ImageRecipe) -> ArchivedImage:
        found = pull(of.registry.url, image.published or "", image.tag, architecture)
        return msgspec.structs.replace(found, reference=made_of.reference(image))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        images = list(pool.map(pulled, wanted))
    size = sum(len(blob) for image in images for blob in image.blobs.values())
    summary, seconds = f"{len(images)} images, {size / 1e6:.0f} MB", time.monotonic() - began
    report(StageFinished(name="published images", ok=True, summary=summary, seconds=seconds))
    return images
