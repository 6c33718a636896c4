"""`gcluster restore`: a saved queue back to the controller, with its accounts."""

from typing import Annotated

import typer

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.cluster.sites import existing_hosts
from ...lifecycle.nodes.ssh import SshSession
from ...lifecycle.operations.queue_state import restore_queue
from ...lifecycle.state import acquire
from ...lifecycle.up.run import Run
from ..options import Format, OutputFormat, Target
from ..render.document import answer
from ..render.operate.operations import restored_text


def command(
    cluster: Target,
    saved: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Of a saved queue; default: the newest.")
    ] = None,
    discard_queue: Annotated[
        bool, typer.Option("--discard-queue", help="Lose the jobs that the controller has now.")
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Load a saved queue and accounts into the controller.

    Where the controller is gone, the next `gcluster up` makes one that begins with them. Where
    there is one it is all or nothing; exit code 4 when there are jobs that would be lost.
    """
    opened = open_cluster(cluster, running=True)
    opened.identify()
    with (
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason="restore") as lock,
        Run(opened, "restore", lock) as run,
    ):
        hosts = existing_hosts(opened, may_be_none=True)
        result = restore_queue(opened, hosts, session, saved, discard=discard_queue)
        run.finish(Exit.OK)
    answer(fmt, result, lambda: restored_text(result))
    return Exit.OK
