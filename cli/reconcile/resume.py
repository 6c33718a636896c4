"""`gcluster reconcile resume`: a paused cluster follows the repository again."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from ...lifecycle.outcome import Exit
from ..options import Target
from ..render.output import say


def command(cluster: Target) -> Exit:
    """Let a paused cluster follow the repository again."""
    from ...lifecycle.cluster import open_cluster
    from ...lifecycle.gitops.pausing import go_on

    opened = open_cluster(cluster, running=True)
    paused = go_on(opened)
    if paused is None:
        say(f"{opened.name} was not paused")
    else:
        say(f"{opened.name} follows the repository again; {paused.by} had it paused")
    return Exit.OK
