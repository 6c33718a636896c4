"""The command line as typer knows it: what is imported here is paid for by every command."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .. import __version__
from .group import CONTEXT, Verbs
from .render.output import say

app = typer.Typer(
    name="gcluster",
    cls=Verbs,
    context_settings=CONTEXT,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    epilog="Exit codes: 0 ok, 1 failed, 2 the spec is wrong, 3 changes pending, 4 refused, "
    "5 leftovers remain, 6 lock held, 64 usage, 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"gcluster {__version__}")
        raise typer.Exit


@app.callback()
def gcluster(
    version: Annotated[  # its callback does the work
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """One typed spec to a running GPU cluster that has passed its multi-node AllReduce."""


def command() -> Any:
    """Return the group with its verbs, not yet imported."""
    return typer.main.get_command(app)
