"""`gcluster show`: the events of one run."""

from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.state.audit.artifacts import read_artifacts
from ...lifecycle.state.audit.history import show
from ..console import stdout
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.inspect.status import run_text


def command(
    cluster: Target,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, or how it begins.")],
    artifacts: Annotated[
        Path | None,
        typer.Option("--artifacts", metavar="FILE", help="Write its logs here too (tar, gzip)."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Show the events of one run; history lists the runs."""
    opened = open_cluster(cluster, running=True)
    shown = show(opened, run)
    if artifacts is not None:
        data = read_artifacts(opened.store, shown.run.id)
        if data is None:
            raise failure("GC907", f"run {shown.run.id} has left no logs in the state")
        artifacts.write_bytes(data)
    answer(fmt, shown, lambda: run_text(shown, stdout()))
    return Exit.OK
