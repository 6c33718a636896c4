"""Older spellings of the spec language: read with a warning, rewritten by `migrate`.

A published `apiVersion` keeps loading: a key is renamed by adding a row to `RENAMES`, never by
taking the old one away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ..diagnostics import Diagnostic, PathTuple, Severity
from ..structure.document import Document
from .edits import RenameKey
from .patches import patch_of

_LATEST = 1
"""Highest number of an `apiVersion` that this gcluster reads."""


class Rename(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the spec that has another name now."""

    api_version: str
    """The `apiVersion` that may be written the old way."""
    at: PathTuple
    """The mappings that have it: keys from the root; "*" stands for any key and any item."""
    key: str
    to: str
    only: tuple[str, str] | None = None
    """Key and word that the mapping must have, such as its provider."""
    because: str
    """Half a sentence for the reader of the warning."""


RENAMES: tuple[Rename, ...] = (
    Rename(
        api_version="gcluster/v1",
        at=("sites", "*"),
        key="capacity",
        to="max_nodes",
        only=("provider", "simulated"),
        because="capacity means bytes everywhere else",
    ),
)
"""Oldest first."""


def newer_version(document: Document, *, file: str) -> Diagnostic | None:
    """Return the error of a spec that is written for a newer gcluster, or None.

    Nothing else can be said about such a file: what looks wrong may be right there.
    """
    written = document.data.get("apiVersion") if isinstance(document.data, dict) else None
    match = re.fullmatch(r"gcluster/v([0-9]{1,6})", written) if isinstance(written, str) else None
    if match is None or int(match[1]) <= _LATEST:
        return None
    return Diagnostic(
        code="GC026",
        severity=Severity.ERROR,
        summary=f"this gcluster is too old for the spec: it reads gcluster/v{_LATEST}, "
        f"the file is {written}",
        path=("apiVersion",),
        file=file,
        span=document.locate(("apiVersion",)),
        hint="upgrade gcluster on this machine",
    )


def upgrade(
    document: Document,
    *,
    file: str,
    spoilt: frozenset[PathTuple] = frozenset(),
    renames: Iterable[Rename] = RENAMES,
) -> tuple[Diagnostic, ...]:
    """Change the document's data to today's spelling and return a warning for each change.

    Args:
        document: its data is changed, its text and places stay.
        file: name for the diagnostics.
        spoilt: paths that are reported as unreadable already; they are left alone.
        renames: the changes, oldest first.
    """
    if not isinstance(document.data, dict):
        return ()
    warnings: list[Diagnostic] = []
    for rename in renames:
        if document.data.get("apiVersion") != rename.api_version:
            continue
        seen: set[int] = set()  # a mapping that is shared by an alias is changed once
        for path, holder in list(_mappings(document.data, rename.at, ())):
            if id(holder) in seen:
                continue
            seen.add(id(holder))
            where = (*path, rename.key)
            if _is_old(holder, rename) and where not in spoilt:
                warnings.append(_warning(document, rename, where, file))
                document.rename(holder, rename.key, rename.to)
    return tuple(warnings)


def _mappings(
    value: Any, pattern: PathTuple, path: PathTuple
) -> Iterator[tuple[PathTuple, dict[str, Any]]]:
    """Yield every mapping that a pattern names."""
    if not pattern:
        if isinstance(value, dict):
            yield path, value
        return
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, inner in entries:
        if pattern[0] in {"*", key}:
            yield from _mappings(inner, pattern[1:], (*path, key))


def _is_old(holder: dict[str, Any], rename: Rename) -> bool:
    """Say whether a mapping has the old key and not the new one, which would be a mistake."""
    kind = rename.only is None or holder.get(rename.only[0]) == rename.only[1]
    return kind and rename.key in holder and rename.to not in holder


def _warning(document: Document, rename: Rename, path: PathTuple, file: str) -> Diagnostic:
    where = ".".join(str(step) for step in path[:-1])
    return Diagnostic(
        code="GC025",
        severity=Severity.WARNING,
        summary=f'"{rename.key}" in {where} is now called "{rename.to}": {rename.because}',
        path=path,
        file=file,
        span=document.locate(path, key=True),
        hint="gcluster migrate rewrites the file; until then it is read as before",
        patch=patch_of(RenameKey(path, rename.to), document),
    )
