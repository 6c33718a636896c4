"""`gcluster reconcile pause`: a cluster is left as it is until somebody says otherwise."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from typing import Annotated

import typer

from ...lifecycle.outcome import Exit
from ..options import Target
from ..render.output import say


def command(
    cluster: Target,
    reason: Annotated[str, typer.Option("--reason", help="Why; status and history show it.")],
) -> Exit:
    """Have a cluster left as it is, whatever is merged.

    It is written into the cluster's state, so every controller sees it.
    """
    from ...lifecycle.cluster import open_cluster
    from ...lifecycle.gitops.pausing import pause

    opened = open_cluster(cluster, running=True)
    paused = pause(opened, reason)
    say(f"{opened.name} is left as it is, for {paused.by}: gcluster reconcile resume {cluster}")
    return Exit.OK
