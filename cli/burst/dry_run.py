"""`gcluster burst dry-run`: what the spill policy says of a queue, with every reason."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.outcome import Exit
from ..options import Format, OutputFormat, SpecPath
from ..render.document import document
from ..render.output import say
from ..render.surface import stdout


def command(
    spec: SpecPath,
    queue: Annotated[
        str,
        typer.Argument(help='JSON of pending jobs and rented nodes (docs/hybrid.md); "-": stdin.'),
    ],
    partition: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Partition; default: the one whose jobs spill."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Say which jobs of a saved queue would spill now, and why.

    Nothing is moved, asked or rented.
    """
    from ...lifecycle.burst.saved_queue import read_queue, try_out

    source = sys.stdin.buffer.read() if queue == "-" else Path(queue)
    found = try_out(Path(spec), read_queue(source), partition)
    if fmt is Format.JSON:
        say(document(found))
    else:
        from ..render.burst import round_text

        say(round_text(found, stdout()))
    return Exit.OK
