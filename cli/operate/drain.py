"""`gcluster drain`: nodes out of service, for a reason that all users see."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.service import drain
from ...lifecycle.scheduler.select import scheduler_of
from ..options import Format, Nodes, OutputFormat, Target
from ..render.document import answer
from ..render.operate.operations import service_text


def command(
    cluster: Target,
    nodes: Nodes,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; the scheduler shows it.")
    ],
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Drain nodes; running jobs finish.

    gcluster drain demo gpu017 --reason "NVLink of GPU 3" · gcluster drain demo train --reason move
    """
    opened = open_cluster(cluster, running=True)
    with SshSession(opened.workdir) as session:
        hosts = existing_hosts(opened)
        result = drain(hosts, scheduler_of(opened.spec, hosts, session), nodes, reason)
    answer(fmt, result, lambda: service_text(result))
    return result.exit_code
