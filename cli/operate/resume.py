"""`gcluster resume`: drained nodes back into service."""

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.service import resume
from ...lifecycle.scheduler.select import scheduler_of
from ..options import Format, Nodes, OutputFormat, Target
from ..render.document import answer
from ..render.operate.operations import service_text


def command(cluster: Target, nodes: Nodes, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Return drained nodes to service.

    Nodes that gcluster itself is changing are refused: it verifies them first. Exit code 1 when one
    is still out afterwards, because it is down.
    """
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        hosts = existing_hosts(opened)
        result = resume(hosts, scheduler_of(opened.spec, hosts, session), nodes)
    answer(fmt, result, lambda: service_text(result))
    return result.exit_code
