"""`gcluster history`: every run on a cluster, who started it and how it ended."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.state.audit.history import history
from ...lifecycle.state.audit.trail import audit_lines
from ..console import emit, stdout
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.inspect.status import history_text


def command(
    cluster: Target,
    events: Annotated[
        bool, typer.Option("--events", help="Print every event instead, a line of JSON each.")
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """List the runs that changed a cluster and how they ended."""
    opened = open_cluster(cluster, running=True)
    if events:
        for line in audit_lines(opened):
            emit(line.decode())
        return Exit.OK
    runs = history(opened)
    answer(fmt, runs, lambda: history_text(runs, stdout()))
    return Exit.OK
