"""`gcluster restore`: a saved queue back to the controller."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from typing import Annotated

import typer

from gcluster.cli.options import Format, OutputFormat, Target
from gcluster.cli.render.output import say
from gcluster.lifecycle.outcome import Exit


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
    """Give a saved queue back to the controller, or to the next one.

    Where the controller is gone, the next `gcluster up` makes one that begins with this queue. Exit
    code 4 when there are jobs that would be lost.
    """
    from gcluster.cli.render.document import document
    from gcluster.cli.render.operations import restored_text
    from gcluster.lifecycle.cluster import open_cluster
    from gcluster.lifecycle.operations.queue_state import restore_queue
    from gcluster.lifecycle.run import Run
    from gcluster.lifecycle.sites import existing_hosts
    from gcluster.lifecycle.ssh import SshSession
    from gcluster.lifecycle.state import acquire

    opened = open_cluster(cluster, running=True)
    opened.identify()
    with (
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason="restore") as lock,
        Run(opened, "restore", lock) as run,
    ):
        hosts = existing_hosts(opened)
        result = restore_queue(opened, hosts, session, saved, discard=discard_queue)
        run.finish(Exit.OK)
    say(document(result) if fmt is Format.JSON else restored_text(result))
    return Exit.OK
