"""`gcluster jobs`: what runs, waits, or ended a short while ago."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.scheduler.workloads.account import account_of
from ...lifecycle.scheduler.workloads.select import open_queue
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.jobs import account_text, jobs_text


def command(
    cluster: Target,
    job: Annotated[
        str | None,
        typer.Argument(metavar="[JOB]", help="Id of a job: its price, goodput and interruptions."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """List the jobs waiting, running and just ended, or show one.

    gcluster jobs lab · gcluster jobs lab 17
    """
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        hosts = existing_hosts(opened)
        queue = open_queue(opened, hosts, session)
        if job is not None:
            one = account_of(opened, hosts, session, queue.state(job))
            answer(fmt, one, lambda: account_text(one))
            return Exit.OK
        found = queue.jobs()
    answer(fmt, found, lambda: jobs_text(found))
    return Exit.OK
