"""What the words of `gcluster adopt` have in common: where they write, and what they say then."""

# ruff: noqa: PLC0415  # imported when a verb runs: help and other verbs need none of it

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ..lifecycle.outcome import Exit
from .options import Format
from .render.adopt import adopted_text
from .render.document import document
from .render.output import say
from .render.surface import stdout

if TYPE_CHECKING:
    from ..schemas.adopt.draft import Adopted

Output: TypeAlias = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The spec to write.")
]
Name: TypeAlias = Annotated[
    str, typer.Option("--name", help="Name of the cluster; default: as the source has it.")
]


def adopt(make: Callable[[str], Adopted], origin: str, output: Path, fmt: Format) -> Exit:
    """Write what was drafted, say what is missing and whether the spec is right.

    Args:
        make: drafts it, on the day that it is given.
        origin: what it is adopted from, in words.
        output: the spec to write.
        fmt: how the result is told.
    """
    from ..lifecycle.adopt import drafted, today, write_adopted

    written = write_adopted(drafted(lambda: make(today())), output, origin)
    say(document(written) if fmt is Format.JSON else adopted_text(written, stdout()))
    return Exit.SPEC if any(found.is_error for found in written.findings) else Exit.OK
