"""Read older spellings as what they are called today: the data in memory changes, the text not.

Each one is a warning with its place and a patch, so that `gcluster migrate` (and validate --fix)
can rewrite the file, comments kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..diagnostics import Diagnostic, Patch, PathTuple, Severity
from ..mend.fix import RenameKey, ReplaceWord
from ..mend.patches import patch_of
from ..structure.words import dotted
from ..text.document import Document
from .moving import move_patch
from .steps import STEPS, Move, Pattern, Rename, Reword, Step


def modernise(
    document: Document,
    *,
    file: str,
    spoilt: frozenset[PathTuple] = frozenset(),
    steps: Iterable[Step] = STEPS,
) -> tuple[Diagnostic, ...]:
    """Change the document's data to today's spelling and return a warning for each change.

    Args:
        document: its data is changed, its text and places stay.
        file: name for the diagnostics.
        spoilt: paths that are reported as unreadable already; they are left alone.
        steps: the changes, oldest first.
    """
    warnings: list[Diagnostic] = []
    for step in steps:
        if _version(document) != step.api_version:
            continue
        found = [path for path in _old(document.data, step) if path not in spoilt]
        warnings += [_warning(document, step, path, file) for path in found]
        for path in found:
            _change(document, step.change, path)
    return tuple(warnings)


def _version(document: Document) -> Any:
    return document.data.get("apiVersion") if isinstance(document.data, dict) else None


def _old(data: Any, step: Step) -> Iterator[PathTuple]:
    """Yield the paths where the old spelling stands; a shared mapping (alias) once."""
    change = step.change
    seen: set[int] = set()
    at = change.at[:-1] if isinstance(change, Reword) else change.at
    for path, holder in _matches(data, at, ()):
        if id(holder) in seen or not _is_meant(holder, step):
            continue
        seen.add(id(holder))
        if isinstance(change, Reword):
            for key, word in _entries(holder):
                if change.at[-1] in {"*", key} and word == change.word:
                    yield (*path, key)
        elif isinstance(holder, dict) and change.key in holder and not _is_there(holder, change):
            yield (*path, change.key)


def _matches(value: Any, pattern: Pattern, path: PathTuple) -> Iterator[tuple[PathTuple, Any]]:
    """Yield every mapping or list that a pattern names."""
    if not pattern:
        if isinstance(value, dict | list):
            yield path, value
        return
    for key, inner in _entries(value):
        if pattern[0] in {"*", key}:
            yield from _matches(inner, pattern[1:], (*path, key))


def _entries(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _is_meant(holder: Any, step: Step) -> bool:
    if step.only is None:
        return True
    key, word = step.only
    return isinstance(holder, dict) and holder.get(key) == word


def _is_there(holder: dict[str, Any], change: Rename | Move) -> bool:
    """Say whether the new place is taken already: then the old key is a mistake like any other."""
    target: Any = holder
    for key in (change.to,) if isinstance(change, Rename) else change.to:
        if not isinstance(target, dict):
            return True
        if key not in target:
            return False
        target = target[key]
    return True


def _warning(document: Document, step: Step, path: PathTuple, file: str) -> Diagnostic:
    change, where = step.change, dotted(path[:-1])
    if isinstance(change, Reword):
        summary = f'"{change.word}" in {dotted(path)} is now called "{change.to}"'
    elif isinstance(change, Rename):
        summary = f'"{change.key}" in {where} is now called "{change.to}"'
    else:
        summary = f'"{change.key}" in {where} now stands in {".".join(change.to[:-1])}'
        summary += f' as "{change.to[-1]}"' if change.to[-1] != change.key else ""
    return Diagnostic(
        code="GC025",
        severity=Severity.WARNING,
        summary=f"{summary}: {step.because}",
        path=path,
        file=file,
        span=document.locate(path, key=not isinstance(change, Reword)),
        hint="gcluster migrate rewrites the file; until then it is read as before",
        patch=_patch(document, change, path),
    )


def _patch(document: Document, change: Rename | Move | Reword, path: PathTuple) -> Patch | None:
    if isinstance(change, Rename):
        return patch_of(RenameKey(path, change.to), document)
    if isinstance(change, Reword):
        return patch_of(ReplaceWord(path, change.to), document)
    return move_patch(document, path, change.to)


def _change(document: Document, change: Rename | Move | Reword, path: PathTuple) -> None:
    """Change the data; places follow their entries."""
    holder: Any = document.data
    for key in path[:-1]:
        holder = holder[key]
    if isinstance(change, Reword):
        holder[path[-1]] = change.to
    else:
        to = (change.to,) if isinstance(change, Rename) else change.to
        document.move(holder, change.key, to)
