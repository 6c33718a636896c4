"""`gcluster logs`: what a job has printed, from the node that writes it."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.scheduler.workloads.account import price_of
from ...lifecycle.scheduler.workloads.follow import follow
from ...lifecycle.scheduler.workloads.select import open_log, open_queue
from ..console import say
from ..options import Target
from ..render.operate.jobs import printed, state_line


def command(
    cluster: Target,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")],
    following: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until it ends.", show_default=False)
    ] = False,
) -> Exit:
    """Show what a job has printed, and follow it with -f.

    gcluster logs lab 17 · gcluster logs lab 17 -f
    """
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        hosts = existing_hosts(opened)
        queue = open_queue(opened, hosts, session)
        log = open_log(queue, hosts, session)
        if following:
            follow(
                queue,
                log,
                job,
                changed=lambda state: say(state_line(state, price_of(opened, hosts, state))),
                printed=printed,
            )
            return Exit.OK
        state = queue.state(job)
        text = log.more(state)
        if text:
            printed(text)
        else:
            say(state_line(state))
    return Exit.OK
