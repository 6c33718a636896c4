"""`gcluster ssh`: a shell on a node, with its pinned host key."""

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh.shell import ssh_argv
from ..app import single
from ..options import Target

_AFTER = "gcluster.ssh.after"


class RestOfLine(TyperCommand):
    """What follows `--` is the command for the node, whatever comes before it."""

    allow_interspersed_args = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the words after the first `--` away before options are looked for."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_AFTER] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


def rest_of_line(ctx: typer.Context) -> list[str]:
    """Return the words after `--`."""
    words: list[str] = ctx.meta[_AFTER]
    return words


def command(
    ctx: typer.Context,
    cluster: Target,
    host: Annotated[
        str | None, typer.Argument(help="Name of a node; default: a login node or the controller.")
    ] = None,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="Run this, then return.")
    ] = None,
) -> Exit:
    """Log in to a node, or run a command there.

    gcluster ssh demo · gcluster ssh demo gpu001 · gcluster ssh demo gpu001 -- nvidia-smi
    """
    remote = [*(words or []), *rest_of_line(ctx)]
    argv = ssh_argv(open_cluster(cluster, running=True), host, remote)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(argv[0], argv)  # noqa: S606  # an argument list; this process becomes ssh


app = single("ssh", command, cls=RestOfLine)
