"""`gcluster adopt slurm`: a spec of a Slurm cluster that runs."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.outcome import Exit, failure
from ...schemas.adopt.slurm_output import read_slurm
from ..adopting import Name, Output, adopt
from ..options import Format, OutputFormat


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Saved output of scontrol show config, nodes and partitions, or slurm.conf; "
            "default: scontrol is asked here.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="[USER@]HOST", help="Ask scontrol there, by SSH.")
    ] = "",
    user: Annotated[
        str, typer.Option("--user", help="Whom gcluster logs in to the nodes as.")
    ] = "root",
    name: Name = "",
    output: Output = Path("cluster.yaml"),
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Adopt a Slurm cluster, by what scontrol prints of it.

    Nothing is changed. Nodes that are alike and serve the same partitions become a pool. Exit code
    2 when the spec needs a hand before it is right.
    """
    from ...lifecycle.adopt import slurm_texts
    from ...schemas.adopt.slurm import adopt_slurm

    if host.startswith("-") or (host and files):
        summary = "--host takes [USER@]HOST, and no files beside it"
        raise failure("GC941", summary, hint="gcluster adopt slurm --help", exit_code=Exit.USAGE)
    read = read_slurm(slurm_texts(files or [], host))
    where = ", ".join(path.name for path in files or []) or host or "this machine"
    origin = f"Slurm ({where})"
    return adopt(
        lambda day: adopt_slurm(read, name=name, user=user, origin=origin, date=day),
        origin,
        output,
        fmt,
    )
