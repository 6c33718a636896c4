"""`gcluster down`: the end of a cluster, with nothing left behind but data."""

from collections.abc import Callable
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.down.down import down
from ...stacks.provider import Leftover
from ..console import ask, say, stdout
from ..options import Format, OutputFormat, Target, Yes
from ..render.document import answer
from ..render.operate.up import down_text, existing_text
from ..render.progress import LineProgress, open_progress


def command(
    cluster: Target,
    delete_data: Annotated[
        list[str] | None,
        typer.Option("--delete-data", metavar="NAME", help="Storage whose data is destroyed too."),
    ] = None,
    skip_kubernetes: Annotated[
        bool,
        typer.Option(
            "--skip-kubernetes",
            help="Skip a cloud's control plane: its load balancers and disks may stay.",
        ),
    ] = False,
    yes: Yes = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Remove a cluster except its data, and check for leftovers.

    Shows what there is and asks for confirmation. Exit code 5 when something remains; kept data is
    no leftover.
    """
    opened = open_cluster(cluster, running=True)
    named = tuple(delete_data or ())
    with open_progress(fmt.value) as report:
        confirm = _yes if yes else _asker(report, fmt, named)
        result = down(
            opened,
            report,
            confirm=confirm,
            delete_data=named,
            skip_kubernetes=skip_kubernetes,
        )
    answer(fmt, result, lambda: down_text(result, stdout()))
    return result.exit_code


def _yes(_: tuple[Leftover, ...]) -> bool:
    return True


def _asker(
    report: LineProgress, fmt: Format, named: tuple[str, ...]
) -> Callable[[tuple[Leftover, ...]], bool]:
    """Return what shows what there is and prompts; in JSON neither."""

    def confirm(existing: tuple[Leftover, ...]) -> bool:

        report.pause()
        if fmt is Format.TEXT:
            say(f"{existing_text(existing, stdout())}\n")
        question = "remove all of it?"
        if named:
            question = f"remove it, and destroy the data of {', '.join(named)} for ever?"
        return ask(question, possible=fmt is Format.TEXT)

    return confirm
