"""`gcluster backup`: queue and accounts, saved for a controller that is lost or replaced."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.cluster.sites import existing_hosts
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.queue_state import save_queue, saved_queues
from ...lifecycle.state import acquire
from ...lifecycle.up.run import Run
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
    """Save the controller's queue and accounts, encrypted.

    slurmctld pauses for the seconds that the copy takes; running jobs go on.
    """
    opened = open_cluster(cluster, running=True)
    if list_saved:
        found = saved_queues(opened)
        lines = "\n".join(map(saved_text, found)) or "nothing was saved"
        answer(fmt, list(found), lambda: lines)
        return Exit.OK
    opened.identify()
    with (
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason="backup") as lock,
        Run(opened, "backup", lock) as run,
    ):
        saved = save_queue(opened, existing_hosts(opened), session)
        run.finish(Exit.OK)
    answer(fmt, saved, lambda: saved_text(saved))
    return Exit.OK
