"""`gcluster restore`: a backup back to the controller, or to the control planes."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.etcd_state import restore_etcd
from ...lifecycle.operations.queue_state import restore_queue
from ...lifecycle.operations.selection import require_scheduler
from ...lifecycle.state import acquire
from ...lifecycle.up.run import Run
from ...schemas.spec import KubernetesScheduler
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.operations import restored_text


def command(
    cluster: Target,
    saved: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Of a backup; default: the newest.")
    ] = None,
    discard_queue: Annotated[
        bool, typer.Option("--discard-queue", help="Lose the jobs, or objects, of now.")
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Load a backup into the controller, or the control planes.

    Where the controller is gone, the next `gcluster up` makes one that begins with them. Where
    there is one it is all or nothing; exit code 4 when there are jobs that would be lost.
    """
    opened = open_cluster(cluster, running=True)
    require_scheduler(opened.spec)
    opened.identify()
    with (
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason="restore") as lock,
        Run(opened, "restore", lock) as run,
    ):
        hosts = existing_hosts(opened, may_be_none=True)
        kubernetes = isinstance(opened.spec.scheduler, KubernetesScheduler)
        restore = restore_etcd if kubernetes else restore_queue
        result = restore(opened, hosts, session, saved, discard=discard_queue)
        run.finish(Exit.OK)
    answer(fmt, result, lambda: restored_text(result))
    return Exit.OK
