"""`gcluster plan`: what `up` would change, as text or JSON."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from typing import Annotated

import typer

from gcluster.cli.options import Format, OutputFormat, Target
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit


def command(
    cluster: Target,
    detailed_exitcode: Annotated[
        bool,
        typer.Option("--detailed-exitcode", help="Exit 3 when there is something to change."),
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Say what up would change, and change nothing.

    + is new, ~ changes, - goes away, ! is replaced or can't be seen.
    """
    from gcluster.cli.render.document import document
    from gcluster.cli.render.plan import plan_text
    from gcluster.cli.render.surface import stdout
    from gcluster.lifecycle.cluster import open_cluster
    from gcluster.lifecycle.plan import make_plan

    plan = make_plan(open_cluster(cluster, planning=True))
    if plan.diagnostics and fmt is Format.TEXT:
        from gcluster.cli.render.diagnostics import diagnostics_text

        say(f"{diagnostics_text(plan.diagnostics, stdout())}\n")
    say(document(plan) if fmt is Format.JSON else plan_text(plan, stdout()))
    return Exit.PENDING if detailed_exitcode and not plan.is_empty else Exit.OK
