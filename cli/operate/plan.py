"""`gcluster plan`: what `up` would change, as text, JSON or Markdown, and as a file to approve."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.planning.plan import make_plan
from ...lifecycle.planning.plan_file import plan_file, write_plan
from ...lifecycle.planning.preflight.obstacles import preflight_of
from ..console import emit, say, stdout
from ..options import PlanFormat, PlanOutput, Target
from ..render.diagnostics import diagnostics_text
from ..render.document import answer
from ..render.operate.plan import plan_text
from ..render.operate.plan_markdown import plan_markdown
from ..render.operate.up import preflight_text


def command(
    cluster: Target,
    detailed_exitcode: Annotated[
        bool,
        typer.Option("--detailed-exitcode", help="Exit 3 when there is something to change."),
    ] = False,
    preflight: Annotated[
        bool,
        typer.Option(
            "--preflight", help="Check at every site what would stop up; 4 when something does."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write the plan too, for up --plan: cluster.gcplan."
        ),
    ] = None,
    fmt: PlanOutput = PlanFormat.TEXT,
) -> Exit:
    """Show what up would change, and change nothing.

    + is new, ~ changes, - goes away, ! is replaced or can't be seen. Exit code 4 when something
    is found that up refuses.
    """
    opened = open_cluster(cluster)
    plan = make_plan(opened)
    if preflight:
        plan = replace(plan, preflight=preflight_of(opened))
    if out is not None:
        write_plan(out, plan_file(opened, plan))
    if plan.diagnostics and fmt is PlanFormat.TEXT:
        say(f"{diagnostics_text(plan.diagnostics, stdout())}\n")
    if fmt is PlanFormat.MARKDOWN:
        emit(plan_markdown(plan))
    else:
        answer(fmt, plan, lambda: plan_text(plan, stdout()))
    if plan.preflight is not None and fmt is PlanFormat.TEXT:
        say(f"\n{preflight_text(plan.preflight, stdout())}")
    requested = (diagnostic for site in plan.preflight or () for diagnostic in site.diagnostics)
    if any(diagnostic.is_error for diagnostic in (*plan.diagnostics, *requested)):
        return Exit.REFUSED
    return Exit.PENDING if detailed_exitcode and not plan.is_empty else Exit.OK
