"""Images as text: what each site's nodes boot from, and what was written for other builders."""

from __future__ import annotations

from collections.abc import Iterator

from ...lifecycle.images.ahead import Images
from .quantities import duration, plural
from .surface import Surface


def images_text(images: Images, surface: Surface) -> str:
    """Return a line for each site, and one for each playbook."""
    return surface.plain("\n".join(_lines(images, surface)))


def _lines(images: Images, surface: Surface) -> Iterator[str]:
    for image in images.sites:
        title = surface.paint("strong", f"site {image.site} ({image.provider})")
        what = f"image {image.key[:12]} with {plural(len(image.steps), 'step')}"
        how = "was there" if image.was_there else f"baked in {duration(image.seconds)}"
        yield f"{title}  {what}, {how}"
    for site, provider in images.unbaked.items():
        title = surface.paint("strong", f"site {site} ({provider})")
        yield f"{title}  its nodes boot from no image that gcluster bakes"
    for pool, path in images.playbooks.items():
        yield f"pool {pool}: wrote {path}, to be run with the collection gcluster.cluster"
