"""Artefact sources that the spec takes from elsewhere: that there are such, and who signs them."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import Severity
from ..suggest import listing
from .context import CheckContext
from .registry import Finding, check


@check("GC617", summary="An artefact source that the catalog doesn't have.")
def unknown_source(context: CheckContext) -> Iterator[Finding]:
    """`software.sources` names sources of the catalog: the vendors' repositories and downloads.

    A redirect of a name that no role asks for would change nothing, and nodes would go on to load
    from the vendor.
    """
    known = context.catalog.sources
    for name in context.software.sources:
        if name not in known and context.catalog.complete:
            meant = context.suggest(name, known)
            question = f': did you mean "{meant}"?' if meant else ""
            yield Finding(
                summary=f'unknown artefact source "{name}"{question}',
                path=("software", "sources", name),
                hint=f"the catalog has {listing(known)}",
                at_key=True,
                relies_on=(("catalog",),),
            )


@check("GC618", summary="A mirror whose signing key nobody vouches for.")
def unkeyed_mirror(context: CheckContext) -> Iterator[Finding]:
    """Nodes trust a repository by the fingerprint of its key, and refuse packages without one.

    Where the catalog knows no fingerprint of the vendor's key, the spec has to say it, read from
    the vendor through another way than the download.
    """
    for name, redirect in context.software.sources.items():
        source = context.catalog.sources.get(name)
        if source is None or not source.repositories:
            continue
        if redirect.key_fingerprint is None and source.key_fingerprint is None:
            yield Finding(
                summary=f'no fingerprint is known of the key that signs "{name}"',
                path=("software", "sources", name),
                severity=Severity.ERROR,
                hint="write key_fingerprint, read from the vendor through another way",
                at_key=True,
                relies_on=(("software", "sources", name), ("catalog",)),
            )
