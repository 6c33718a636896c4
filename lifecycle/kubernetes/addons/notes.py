"""Notes on an installed add-on: hooks that don't run, images without a digest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.stack.bundle import BundleManifest
from ..objects import ObjectKey
from ..release.image_archive import full_name, split_tag
from ..workloads import TO_KEEP, counted
from .rendering import Rendered

_NAMED = 4


def notes_of(addon: str, made: Rendered) -> Iterator[Diagnostic]:
    """Yield what a user should know of an add-on (pure)."""
    if hooks := made.hooks.skipped_hooks:
        yield Diagnostic(
            code="GC1063",
            severity=Severity.NOTE,
            summary=f"add-on {addon}: hooks that up never runs: {_few(hooks)}",
            hint="it rolls nothing back, and removes what a chart made by itself",
        )
    if made.unpinned:
        yield Diagnostic(
            code="GC1066",
            severity=Severity.NOTE,
            summary=f"add-on {addon} starts images at no digest: {_few(made.unpinned)}",
            hint="write them under `images` of the add-on, in a catalog file of your own",
        )


def remaining_definitions(kept: Mapping[ObjectKey, int]) -> tuple[Diagnostic, ...]:
    """Return the note on CRDs that are kept because objects of their kinds exist."""
    return tuple(
        Diagnostic(
            code="GC1069",
            severity=Severity.WARNING,
            summary=f"{key.kind} {key.name} is kept: {count} objects of its kind would go with it",
            hint="it goes with the next up that finds none",
        )
        for key, count in kept.items()
    )


def remaining_namespaces(kept: Mapping[str, Sequence[str]]) -> tuple[Diagnostic, ...]:
    """Return the note on namespaces that are kept for their contents."""
    return tuple(
        Diagnostic(
            code="GC1007",
            severity=Severity.WARNING,
            summary=f"namespace {name} is kept: {counted(work)} in it",
            hint="it goes with the next up that finds it empty"
            + ("; what a chart keeps you delete yourself" if _is_reported(work) else ""),
        )
        for name, work in kept.items()
    )


def remaining_data(addon: str, kept: Sequence[ObjectKey]) -> tuple[Diagnostic, ...]:
    """Return the note on objects of an add-on that must be deleted by hand."""
    if not kept:
        return ()
    named = _few([f"{key.kind} {key.words}" for key in kept])
    return (
        Diagnostic(
            code="GC1069",
            severity=Severity.WARNING,
            summary=f"of add-on {addon} is kept, for there may be data in it: {named}",
            hint="it is unmanaged now: delete it when it is no longer needed",
        ),
    )


def _is_reported(work: Sequence[str]) -> bool:
    return any(name.endswith(TO_KEEP) for name in work)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


class BundledImages(msgspec.Struct, frozen=True, kw_only=True):
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


def bundled_images(bundle: BundleManifest, command: str) -> BundledImages:
    """Return the images of a bundle: those of Kubernetes, and those added to it.

    Args:
        bundle: its manifest.
        command: the command that completes it, for the hint.
    """
    brought = [image.reference for image in bundle.images if image.archive]
    if bundle.kubernetes is not None:
        brought += [f"{image.reference}@{image.digest}" for image in bundle.kubernetes.images]
    named = [(full_name(name), digest) for name, _, digest in (b.partition("@") for b in brought)]
    return BundledImages(
        names=frozenset(name for name, _ in named),
        digests=frozenset((split_tag(name)[0], digest) for name, digest in named),
        command=command,
    )
