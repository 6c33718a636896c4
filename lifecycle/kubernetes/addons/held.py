"""Images that add-ons start, beside those that a bundle holds: its nodes pull no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ....schemas.bundle import BundleManifest
from ....schemas.diagnostics import Diagnostic, Severity
from ..image_names import full_name, split_tag


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The images whose content a bundle has."""

    names: frozenset[str]
    """With registry and tag."""
    digests: frozenset[tuple[str, str]]
    """Name without its tag, and digest."""
    command: str
    """What makes the bundle whole."""

    def has(self, image: str) -> bool:
        """Whether nodes find an image by the name that a pod has for it."""
        name, _, digest = image.partition("@")
        name = full_name(name)
        return (split_tag(name)[0], digest) in self.digests if digest else name in self.names

    def lacking(self, addon: str, images: Iterable[str]) -> Iterator[Diagnostic]:
        """Yield an error for each image of an add-on that isn't held."""
        for image in images:
            if not self.has(image):
                yield Diagnostic(
                    code="GC1002",
                    severity=Severity.ERROR,
                    summary=f"the bundle has no image {image}, which add-on {addon} starts",
                    hint=f"where the registries are: {self.command}; nothing was changed",
                )


def held_images(bundle: BundleManifest, command: str) -> Held:
    """Return the images of a bundle: those of Kubernetes, and those brought beside it.

    Args:
        bundle: its manifest.
        command: what makes it whole, for the hint.
    """
    brought = [image.reference for image in bundle.images if image.archive]
    if bundle.kubernetes is not None:
        brought += [f"{image.reference}@{image.digest}" for image in bundle.kubernetes.images]
    named = [(full_name(name), digest) for name, _, digest in (b.partition("@") for b in brought)]
    return Held(
        names=frozenset(name for name, _ in named),
        digests=frozenset((split_tag(name)[0], digest) for name, digest in named),
        command=command,
    )
