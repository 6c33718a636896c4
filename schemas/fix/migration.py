"""A spec's file in today's spelling: its text with the patches of its older spellings."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..diagnostics import Diagnostic
from ..load import load_text
from ..structure.source import read_source
from .apply import fixed_text

_OLDER = "GC025"


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """What migrating does to one file."""

    file: str
    before: str
    after: str
    changes: tuple[Diagnostic, ...] = ()
    """Older spellings that are rewritten in `after`."""
    left: tuple[Diagnostic, ...] = ()
    """Older spellings that a person must rewrite."""
    unreadable: tuple[Diagnostic, ...] = ()
    """Why the file can't be looked at; then nothing changes."""


def migration(path: Path) -> Migration:
    """Return a spec file in today's spelling; other mistakes in it stay as they are."""
    source = read_source(path)
    if isinstance(source, Diagnostic):
        return Migration(file=str(path), before="", after="", unreadable=(source,))
    loaded = load_text(source, file=str(path), folder=path.parent, check=False)
    unreadable = loaded.document is None or any(d.code == "GC026" for d in loaded.diagnostics)
    if unreadable:
        return Migration(
            file=loaded.file, before=loaded.text, after=loaded.text, unreadable=loaded.diagnostics
        )
    older = [found for found in loaded.diagnostics if found.code == _OLDER]
    fixed = fixed_text(loaded.text, older)
    return Migration(
        file=loaded.file,
        before=loaded.text,
        after=fixed.text,
        changes=fixed.applied,
        left=fixed.left,
    )
