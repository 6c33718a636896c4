"""fleet.yaml beside specs: in which order clusters are changed, and which may be removed.

```yaml
apiVersion: gcluster/fleet/v1
order: [staging, [east, west], production]   # a step begins when the one before is as merged
remove: [old]                                # clusters whose spec is gone and that shall go too
```
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from ..diagnostics import Diagnostic, PathTuple, Severity, in_file_order
from ..spec.noun import Name, Noun
from ..structure.fit import fit
from ..suggest import closest
from ..text.compose import compose
from ..text.document import Document
from ..text.source import decode

FILE = "fleet.yaml"
"""Its name, in the folder of the specs."""


class Fleet(Noun, frozen=True, kw_only=True):
    """What fleet.yaml says."""

    api_version: Annotated[
        Literal["gcluster/fleet/v1"], Meta(description="Version of this file's form.")
    ] = field(name="apiVersion")
    order: Annotated[
        list[Name | list[Name]],
        Meta(
            description="Clusters, step by step; those of a list are one step. Clusters that are "
            "not named come last, in one step."
        ),
    ] = field(default_factory=list)
    remove: Annotated[
        list[Name],
        Meta(description="Clusters that have no spec here any more and are to be taken down."),
    ] = field(default_factory=list)

    def steps(self, clusters: Collection[str]) -> tuple[tuple[str, ...], ...]:
        """Return these clusters in steps, by name within a step; empty steps are left out."""
        named = [(entry,) if isinstance(entry, str) else tuple(entry) for entry in self.order]
        said = {name for step in named for name in step}
        rest = tuple(name for name in clusters if name not in said)
        steps = (tuple(sorted(set(step) & set(clusters))) for step in (*named, rest))
        return tuple(step for step in steps if step)


class LoadedFleet(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet file, read."""

    fleet: Fleet | None
    """None: it has errors."""
    diagnostics: tuple[Diagnostic, ...]
    text: str = ""


NONE = Fleet(api_version="gcluster/fleet/v1")
"""Where there is no file: one step, nothing is removed."""


def load_fleet(content: bytes, *, file: str, clusters: Collection[str]) -> LoadedFleet:
    """Read a fleet file.

    Args:
        content: its bytes.
        file: how diagnostics call it.
        clusters: names of the clusters whose specs stand beside it.
    """
    text = decode(content, file=file)
    if isinstance(text, Diagnostic):
        return LoadedFleet(fleet=None, diagnostics=(text,))
    composed = compose(text, file=file)
    document = composed.document
    if document is None or not isinstance(document.data, dict):
        found = composed.diagnostics or [_finding("it holds no mapping", file, None, ())]
        return LoadedFleet(fleet=None, diagnostics=tuple(found), text=text)
    structured = fit(Fleet, document, file=file, spoilt=frozenset(composed.broken))
    found = [*composed.diagnostics, *structured.diagnostics]
    if isinstance(structured.value, Fleet):
        found += _wrong(structured.value, document, file, clusters)
    usable = structured.value if not any(each.is_error for each in found) else None
    return LoadedFleet(fleet=usable, diagnostics=tuple(in_file_order(found)), text=text)


def _wrong(
    fleet: Fleet, document: Document, file: str, clusters: Collection[str]
) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, entry in enumerate(fleet.order):
        for at, name in enumerate([entry] if isinstance(entry, str) else entry):
            path: PathTuple = ("order", index) if isinstance(entry, str) else ("order", index, at)
            if name in seen:
                yield _finding(f'cluster "{name}" stands twice in the order', file, document, path)
            elif name not in clusters:
                near = closest(name, clusters)
                hint = f'did you mean "{near}"?' if near else "remove the name"
                yield _finding(f'no spec here is of a cluster "{name}"', file, document, path, hint)
            seen.add(name)
    for index, name in enumerate(fleet.remove):
        if name in clusters:
            yield _finding(
                f'cluster "{name}" is to be removed and has a spec here',
                file,
                document,
                ("remove", index),
                "remove the spec, or the name from this list",
            )


def _finding(
    summary: str, file: str, document: Document | None, path: PathTuple, hint: str = ""
) -> Diagnostic:
    return Diagnostic(
        code="GC1133",
        severity=Severity.ERROR,
        summary=summary,
        path=path,
        file=file,
        span=None if document is None else document.locate(path),
        hint=hint,
    )
