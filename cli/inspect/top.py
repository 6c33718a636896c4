"""`gcluster top`: jobs by what they waste, nodes and links, as they are now."""

import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console as RichConsole
from rich.live import Live
from rich.text import Text

from ...lifecycle.cluster.cluster import Cluster, open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.status.waste.kubernetes import NOW, is_of_pods, metrics_of
from ...lifecycle.status.waste.now import SLURM, Now, read_now
from ..console import say, stdout
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.inspect.top import top_text

INTERVAL_S = 15
"""Between two looks, as between two evaluations of Prometheus' rules."""


def command(
    cluster: Target,
    once: Annotated[
        bool, typer.Option("--once", help="Show it once and end.", show_default=False)
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Most jobs, nodes and links [default: as many as fit]."
        ),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Show jobs and nodes by what they waste now, in dollars.

    Below them are links that are lost or come and go, and the busiest. It queries the cluster's
    Prometheus through SSH (under Kubernetes in its pod) every 15 s; Ctrl-C ends it. With --format
    json, or where the output is no terminal, it shows it once.
    """
    opened = open_cluster(cluster, running=True)
    monitoring = opened.spec.monitoring
    grafana = None if monitoring is None else monitoring.grafana_url
    with SshSession(opened.workdir) as session:
        look = _look(opened, session, grafana)
        if once or fmt is Format.JSON or not stdout().live:
            now = look()
            answer(fmt, now, lambda: top_text(now, stdout(), rows=rows))
        else:
            _watch(look, rows)
    return Exit.OK


def _look(cluster: Cluster, session: SshSession, grafana: str | None) -> Callable[[], Now]:
    """Return what reads it all once, of whichever scheduler the cluster has.

    Raises:
        LifecycleError: its spec has no monitoring (GC1197), or it has no such host (GC908).
    """
    query, queries = metrics_of(cluster, session), NOW if is_of_pods(cluster) else SLURM
    return lambda: read_now(cluster.name, query, time.time(), grafana, queries)


def _watch(look: Callable[[], Now], rows: int | None) -> None:
    """Draw it again and again, until a person ends it."""
    now = look()
    try:
        with Live(
            _drawn(now, rows), console=RichConsole(), screen=True, auto_refresh=False
        ) as live:
            while True:
                time.sleep(INTERVAL_S)
                now = look()
                live.update(_drawn(now, rows), refresh=True)
    except KeyboardInterrupt:
        say(top_text(now, stdout(), rows=rows))


def _drawn(now: Now, rows: int | None) -> Text:
    console, height = stdout(), RichConsole().height
    return Text.from_ansi(console.fit(top_text(now, console, rows=rows, height=height)))
