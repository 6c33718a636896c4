"""`gcluster reconcile unit`: what runs the controller: a systemd unit, or a container file."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from typing import Annotated

import typer

from ...lifecycle.outcome import Exit
from ..reconciling import folder, seconds
from ..render.output import say


def command(
    repo: Annotated[
        str, typer.Option("--repo", metavar="URL", help="The repository: https, SSH or a path.")
    ],
    branch: Annotated[str, typer.Option("--branch", help="The branch that is followed.")] = "main",
    path: Annotated[
        str, typer.Option("--path", metavar="FOLDER", help="Where the specs are in it.")
    ] = "specs/",
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="How long between two looks.")
    ] = "5m",
    container: Annotated[
        bool, typer.Option("--container", help="A container file instead of a unit.")
    ] = False,
) -> Exit:
    """Print a systemd unit, or a container file, that runs the controller."""
    from ...lifecycle.gitops.unit import container_file, unit_file
    from ...lifecycle.state.process import who

    seconds(interval)
    folder(path)
    options = {"repo": repo, "branch": branch, "path": path, "interval": interval}
    text = container_file(options) if container else unit_file(options, who().partition("@")[0])
    say(text.rstrip("\n"))
    return Exit.OK
