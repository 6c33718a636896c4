"""`gcluster drift`: what is no longer as `up` left it, and fixing that alone."""

from collections.abc import Callable
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import Cluster, open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.planning.changes import Plan
from ...lifecycle.status.drift.accept import accept_drift
from ...lifecycle.status.drift.fix import fix_drift
from ...lifecycle.status.drift.observe import find_drift
from ..console import ask, emit, say, stdout
from ..options import PlanFormat, PlanOutput, Target, Yes
from ..render.document import answer, document
from ..render.inspect.drift import accepted_text, drift_markdown, drift_text, fixed_text
from ..render.operate.plan import plan_text
from ..render.progress import LineProgress, open_progress


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    cluster: Target,
    detailed_exitcode: Annotated[
        bool,
        typer.Option("--detailed-exitcode", help="Exit 3 when something has drifted."),
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Plan the drifted parts, confirm, and apply.")
    ] = False,
    requeue_jobs: Annotated[
        bool,
        typer.Option(
            "--requeue-jobs",
            help="With --fix: put jobs on nodes that must be drained back in line.",
        ),
    ] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="NODE:NAME",
            help="Take an entry or account that no role wrote for what it is now.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="THING", help="With --fix: let this happen, as a refusal names it."
        ),
    ] = None,
    yes: Yes = False,
    fmt: PlanOutput = PlanFormat.TEXT,
) -> Exit:
    """Show drift: sites, nodes, fabric and scheduler since up.

    One SSH exec a node; changes nothing without --fix. What only the spec file says is no drift:
    plan shows that. Exit code 1 when a node or scheduler could not be queried.
    """
    opened = open_cluster(cluster, running=True)
    if accept:
        accepted = accept_drift(opened, accept)
        answer(fmt, list(accepted), lambda: accepted_text(accepted))
        return Exit.OK
    if fix:
        return _fix(opened, fmt, frozenset(allow or ()), yes=yes, requeue=requeue_jobs)
    report = find_drift(opened)
    if fmt is PlanFormat.JSON:
        emit(document(report))
    elif fmt is PlanFormat.MARKDOWN:
        emit(drift_markdown(report))
    else:
        say(drift_text(report, stdout()))
    code = report.exit_code
    return code if code is not Exit.PENDING or detailed_exitcode else Exit.OK


def _fix(
    cluster: Cluster, fmt: PlanFormat, allow: frozenset[str], *, yes: bool, requeue: bool
) -> Exit:

    with open_progress("json" if fmt is PlanFormat.JSON else "text") as report:
        result = fix_drift(
            cluster,
            report,
            confirm=_yes if yes else _asker(report, fmt),
            requeue_jobs=requeue,
            allow=allow,
        )
    answer(fmt, result, lambda: fixed_text(result, stdout()))
    return result.exit_code


def _yes(_: Plan) -> bool:
    return True


def _asker(report: LineProgress, fmt: PlanFormat) -> Callable[[Plan], bool]:
    """Return what shows the plan and prompts; in JSON neither."""

    def confirm(plan: Plan) -> bool:

        report.pause()
        if fmt is not PlanFormat.JSON:
            say(f"{plan_text(plan, stdout())}\n")
        return ask("do this?", possible=fmt is not PlanFormat.JSON)

    return confirm
