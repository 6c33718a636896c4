"""`gcluster repair`: nodes that a live cluster does without, brought back or given up."""

from collections.abc import Callable
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.operations.repair.attempt import Intended
from ...lifecycle.operations.repair.work import repair
from ..console import ask, say, stdout
from ..options import Format, OutputFormat, Target, Yes
from ..render.document import answer
from ..render.operate.operations import intended_text, repaired_text
from ..render.progress import LineProgress, open_progress


def command(
    cluster: Target,
    nodes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NODES...]",
            help='Host ranges such as "gpu[017,042]"; default: all that waits in the queue.',
        ),
    ] = None,
    no_replace: Annotated[
        bool, typer.Option("--no-replace", help="Make no machine again; boot and converge only.")
    ] = False,
    yes: Yes = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Repair the nodes in the repair queue.

    They are those that a live cluster does without. Each is booted and converged again, then
    recreated where its site can, then given up with the reason. What is verified and fit serves
    again. Shows what it would try and asks for confirmation. Exit code 1 when a node was given up,
    3 when one was left alone because of its jobs or a person's drain.
    """
    opened = open_cluster(cluster, running=True)
    with open_progress(fmt.value) as report:
        confirm = _yes if yes else _asker(report, fmt)
        result = repair(opened, nodes or (), report, confirm=confirm, replace=not no_replace)
    answer(fmt, result, lambda: repaired_text(result, stdout()))
    return result.exit_code


def _yes(_: tuple[Intended, ...]) -> bool:
    return True


def _asker(report: LineProgress, fmt: Format) -> Callable[[tuple[Intended, ...]], bool]:
    """Return what shows the nodes and prompts; in JSON neither."""

    def confirm(intended: tuple[Intended, ...]) -> bool:

        report.pause()
        if fmt is Format.TEXT:
            say(f"{intended_text(intended)}\n")
        return ask("work on them?", possible=fmt is Format.TEXT)

    return confirm
