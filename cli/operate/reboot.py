"""`gcluster reboot`: nodes restarted in waves that jobs don't feel."""

from collections.abc import Callable
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.operations.reboot import Pace, reboot
from ..console import ask, say
from ..options import Format, Nodes, OutputFormat, Target, Yes
from ..render.document import answer
from ..render.operate.operations import paces_text, rebooted_text
from ..render.progress import LineProgress, open_progress


def command(  # noqa: PLR0917  # typer reads the options from the parameters
    cluster: Target,
    nodes: Nodes,
    at_once: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Nodes of a pool out at a time; default: the spec's."
        ),
    ] = None,
    requeue_jobs: Annotated[
        bool, typer.Option("--requeue-jobs", help="Put jobs back in line; don't wait for them.")
    ] = False,
    yes: Yes = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Reboot nodes in waves, each drained first.

    Nodes return to service when they are fit. Shows what it would do and asks for confirmation.
    Exit code 3 when jobs outlasted the patience of the spec, 1 when a node did not come back fit:
    it stays drained.
    """
    opened = open_cluster(cluster, running=True)
    with open_progress(fmt.value) as report:
        confirm = _yes if yes else _asker(report, fmt)
        result = reboot(
            opened, nodes, report, confirm=confirm, at_once=at_once, requeue=requeue_jobs
        )
    answer(fmt, result, lambda: rebooted_text(result))
    return result.exit_code


def _yes(_: tuple[Pace, ...]) -> bool:
    return True


def _asker(report: LineProgress, fmt: Format) -> Callable[[tuple[Pace, ...]], bool]:
    """Return what shows the waves and prompts; in JSON neither."""

    def confirm(paces: tuple[Pace, ...]) -> bool:

        report.pause()
        if fmt is Format.TEXT:
            say(f"{paces_text(paces)}\n")
        return ask("restart them?", possible=fmt is Format.TEXT)

    return confirm
