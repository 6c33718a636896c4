"""`gcluster logs`: what a job has printed, from the node that writes it."""

from typing import Annotated

import typer

from ...inventory.hosts import ClusterInventory
from ...lifecycle.cluster.cluster import Cluster, open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.scheduler.workloads.account import Price, price_of
from ...lifecycle.scheduler.workloads.follow import Queue, follow
from ...lifecycle.scheduler.workloads.jobs import JobState
from ...lifecycle.scheduler.workloads.progress import Reports
from ...lifecycle.scheduler.workloads.select import open_log, open_queue, open_use
from ..console import say
from ..options import Target
from ..render.operate.jobs import printed, progress_line, state_line


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
        if following:
            follow_job(opened, hosts, session, queue, job)
            return Exit.OK
        log = open_log(queue, hosts, session)
        state = queue.state(job)
        text = log.more(state)
        if text:
            printed(text)
        else:
            say(state_line(state))
    return Exit.OK


def follow_job(
    cluster: Cluster, hosts: ClusterInventory, session: SshSession, queue: Queue, job: str
) -> JobState:
    """Follow a job to its end: what it prints, its states, how it gets on; return its last state.

    Raises:
        LifecycleError: see `follow`.
    """

    def price(state: JobState) -> Price:
        return price_of(cluster, hosts, state)

    reports = Reports(
        price,
        open_use(cluster, hosts, session),
        lambda progress: say(progress_line(progress)),
    )
    return follow(
        queue,
        open_log(queue, hosts, session),
        job,
        changed=lambda state: say(state_line(state, price(state))),
        printed=printed,
        looked=reports.look,
    )
