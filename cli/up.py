"""`gcluster up`: from a spec to a running cluster that has passed its AllReduce."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

import time
from typing import TYPE_CHECKING, Annotated

import typer

from gcluster.cli.options import Format, OutputFormat, Target, Yes
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from gcluster.cli.render.progress import LineProgress
    from gcluster.lifecycle.changes import Plan


def command(
    cluster: Target,
    yes: Yes = False,
    requeue_jobs: Annotated[
        bool,
        typer.Option(
            "--requeue-jobs",
            help="Put jobs on nodes that must be drained back in line; don't wait for their end.",
        ),
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Bring the cluster to what its spec says and pass the AllReduce.

    Shows what would change and asks. Kill it at any point and run it again: it goes on.
    Exit code 4 when the AllReduce fails, 3 when nodes in use were left as they are.
    """
    from gcluster.cli.render.document import document
    from gcluster.cli.render.progress import open_progress
    from gcluster.cli.render.surface import stdout
    from gcluster.cli.render.up import up_text
    from gcluster.lifecycle.cluster import open_cluster
    from gcluster.lifecycle.progress import StageFinished
    from gcluster.lifecycle.up import up

    began = time.monotonic()
    opened = open_cluster(cluster)
    with open_progress(fmt.value) as report:
        seconds = time.monotonic() - began
        report(StageFinished(name="spec", ok=True, summary="0 errors", seconds=seconds))
        result = up(
            opened,
            report,
            confirm=_yes if yes else _asker(report, fmt),
            requeue_jobs=requeue_jobs,
        )
    say(document(result) if fmt is Format.JSON else up_text(result, cluster, stdout()))
    return result.exit_code


def _yes(_: "Plan") -> bool:
    return True


def _asker(report: "LineProgress", fmt: Format) -> "Callable[[Plan], bool]":
    """Return what shows a plan and asks; in JSON nobody is asked and nothing is shown."""

    def confirm(plan: "Plan") -> bool:
        from gcluster.cli.asking import ask
        from gcluster.cli.render.plan import plan_text
        from gcluster.cli.render.surface import stdout

        report.pause()
        if fmt is Format.TEXT:
            say(f"{plan_text(plan, stdout())}\n")
        return ask("do this?", possible=fmt is Format.TEXT)

    return confirm
