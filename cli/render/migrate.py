"""What migrating does to a spec file: each change, the diff, and whether it is written."""

from __future__ import annotations

from ...schemas.fix.migration import Migration
from .cells import printable
from .diagnostics import diagnostics_text
from .diff import diff_text
from .surface import Surface


def migration_text(migration: Migration, surface: Surface, *, written: bool) -> str:
    """Return one file's changes as text."""
    file = printable(migration.file)
    sources = {migration.file: migration.before}
    if migration.unreadable:
        return diagnostics_text(migration.unreadable, surface, sources)
    parts = []
    if migration.changes:
        parts.append(diff_text(migration.file, migration.before, migration.after, surface))
        parts += [surface.plain(f"  {printable(each.summary)}") for each in migration.changes]
        count = len(migration.changes)
        spellings = f"{count} older spelling{'' if count == 1 else 's'}"
        done = "rewritten" if written else "would be rewritten: --write does it"
        parts.append(f"{file}: {spellings} {done}")
    if migration.left:
        parts.append(diagnostics_text(migration.left, surface, sources))
        parts.append(f"{file}: what is shown above has to be rewritten by hand")
    if not parts:
        parts.append(f"{file}: nothing to do, it is in today's spelling")
    return "\n".join(parts)
