"""`gcluster cancel`: a job ends, or leaves the queue."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.scheduler.workloads.select import open_queue
from ..console import say
from ..options import Target


def command(
    cluster: Target, job: Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]
) -> Exit:
    """End a job, or take it out of the queue.

    gcluster cancel lab 17
    """
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        hosts = existing_hosts(opened)
        open_queue(opened, hosts, session).cancel(job)
    say(f"job {job} is cancelled")
    return Exit.OK
