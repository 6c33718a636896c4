"""`gcluster burst explain`: why a job of a running cluster spills or stays."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from typing import Annotated

import typer

from ...lifecycle.outcome import Exit
from ..options import Format, OutputFormat, complete_target
from ..render.document import document
from ..render.output import say
from ..render.surface import stdout


def command(
    cluster: Annotated[
        str,
        typer.Argument(
            metavar="CLUSTER",
            help="Path of a spec, or the name of a cluster that is up.",
            autocompletion=complete_target,
        ),
    ],
    job: Annotated[str, typer.Argument(help="The job's number; an array is one job.")],
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Say why a waiting job spills or stays, on a cluster that is up.

    Asks the scheduler and the burst agent's book, and changes nothing.
    """
    from ...lifecycle.burst.explain import explain_job

    found = explain_job(cluster, job)
    if fmt is Format.JSON:
        say(document(found))
    else:
        from ..render.burst import explained_text

        say(explained_text(found, stdout()))
    return Exit.OK
