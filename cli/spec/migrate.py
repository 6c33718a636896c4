"""`gcluster migrate`: older spellings of the spec language rewritten as they are today."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ...lifecycle.cluster.outcome import Exit, rewrite
from ...schemas.fix.migration import Migration, migration
from ..console import emit, say, stdout
from ..options import Format, OutputFormat, complete_spec
from ..render.document import document
from ..render.spec import migration_text


def command(
    specs: Annotated[
        list[str],
        typer.Argument(metavar="SPEC...", help="Paths of specs.", autocompletion=complete_spec),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Write the files.", show_default=False)
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Rewrite specs in the current spelling, comments kept.

    Older spellings keep loading, so this can wait. Shows what would change; --write changes the
    files. Exit code 2 when a file can't be read as a spec.
    """
    migrations = [migration(Path(spec)) for spec in dict.fromkeys(specs)]
    for each in migrations:
        if write and each.changes:
            rewrite(each.file, each.before, each.after)
    if fmt is Format.JSON:
        emit(document(_report(migrations, write)))
    else:
        _say(migrations, write)
    if any(each.unreadable for each in migrations):
        return Exit.SPEC
    return Exit.FAILED if any(each.left for each in migrations) else Exit.OK


def _say(migrations: list[Migration], write: bool) -> None:

    console = stdout()
    say("\n\n".join(migration_text(each, console, written=write) for each in migrations))


def _report(migrations: list[Migration], write: bool) -> dict[str, Any]:
    return {
        "ok": not any(each.unreadable or each.left for each in migrations),
        "specs": [
            {
                "file": each.file,
                "changes": each.changes,
                "left": each.left,
                "diagnostics": each.unreadable,
                "written": write and bool(each.changes),
            }
            for each in migrations
        ],
    }
