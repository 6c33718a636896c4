"""`gcluster jobs`: what runs, waits, or ended a short while ago."""

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.scheduler.workloads.select import open_queue
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.jobs import jobs_text


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """List the jobs of the queue, and those just ended.

    gcluster jobs lab
    """
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        hosts = existing_hosts(opened)
        found = open_queue(opened, hosts, session).jobs()
    answer(fmt, found, lambda: jobs_text(found))
    return Exit.OK
