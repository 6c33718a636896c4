"""`gcluster backup`: what only a controller has, saved for when it is lost or replaced."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.hosts import existing_hosts
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.etcd_state import save_etcd, saved_etcd
from ...lifecycle.operations.queue_state import save_queue, saved_queues
from ...lifecycle.operations.selection import require_scheduler
from ...lifecycle.state import acquire
from ...lifecycle.up.run import Run
from ...schemas.spec import KubernetesScheduler
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.operations import saved_text


def command(
    cluster: Target,
    list_saved: Annotated[
        bool, typer.Option("--list", help="List what was saved; save nothing.")
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Save queue and accounts, or Kubernetes' etcd, encrypted.

    slurmctld pauses for the seconds that the copy takes; running jobs go on. With etcd go the
    certificate authorities and the key of secrets at rest; nothing is paused.
    """
    opened = open_cluster(cluster, running=True)
    require_scheduler(opened.spec)
    kubernetes = isinstance(opened.spec.scheduler, KubernetesScheduler)
    if list_saved:
        found = saved_etcd(opened) if kubernetes else saved_queues(opened)
        lines = "\n".join(map(saved_text, found)) or "nothing was saved"
        answer(fmt, list(found), lambda: lines)
        return Exit.OK
    opened.identify()
    with (
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason="backup") as lock,
        Run(opened, "backup", lock) as run,
    ):
        save = save_etcd if kubernetes else save_queue
        saved = save(opened, existing_hosts(opened), session)
        run.finish(Exit.OK)
    answer(fmt, saved, lambda: saved_text(saved))
    return Exit.OK
