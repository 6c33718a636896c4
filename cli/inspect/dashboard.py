"""`gcluster dashboard`: a page about a cluster, served on this machine's loopback address."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit, failure
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.status.dashboard.answers import Answers
from ...lifecycle.status.dashboard.server import DashboardServer, LinkEnded
from ...lifecycle.status.waste.kubernetes import is_of_pods, metrics_of
from ...schemas.spec.units import Duration
from ..console import emit, say
from ..options import Target

_LASTS = "12h"
"""How long a link is good for, unless the person says otherwise."""


def command(
    cluster: Target,
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65535, help="Port on 127.0.0.1; 0: a free one."),
    ] = 0,
    lasts: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long the link is good for, such as 8h or 30d."),
    ] = _LASTS,
) -> Exit:
    """Serve a page on 127.0.0.1: health, waste, slow jobs, risks.

    It queries the cluster's Prometheus through your SSH (under Kubernetes in its pod), and changes
    nothing. Ctrl-C ends it. From another machine, open it through ssh -L PORT:127.0.0.1:PORT.
    """
    seconds = _seconds(lasts)
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        answers = Answers(opened.name, metrics_of(opened, session), of_pods=is_of_pods(opened))
        answers.overview()  # what can't be queried is reported here, and not in a browser
        try:
            server = DashboardServer(answers, seconds, port)
        except OSError as error:
            raise failure(
                "GC1194",
                f"port {port} of 127.0.0.1 can't be used: {error.strerror or error}",
                hint="leave --port out: a free one is taken",
                exit_code=Exit.USAGE,
            ) from error
        emit(f"{opened.name}: {server.url}")  # as it is: a link that is wrapped leads nowhere
        say(f"Who has this link can read it, for {lasts}. Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        except LinkEnded:
            say(f"The link has ended after {lasts}; gcluster dashboard makes another.")
        finally:
            server.server_close()
    return Exit.OK


def _seconds(text: str) -> float:
    """Return a time in s; what is none, or no time at all, is wrong usage."""
    try:
        seconds = Duration.parse(text).value
    except ValueError as error:
        raise _usage(f"--lasts {text}: {error}") from error
    if seconds <= 0:
        raise _usage(f"--lasts {text}: the link would be good for no time")
    return seconds


def _usage(summary: str) -> Exception:
    return failure("GC1194", summary, hint=f"leave --lasts out: {_LASTS}", exit_code=Exit.USAGE)
