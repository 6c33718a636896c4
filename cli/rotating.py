"""What the verbs of `gcluster rotate` have in common: locks, a run in the journal, the answer."""

# ruff: noqa: PLC0415  # imported when a verb runs: help and other verbs need none of it

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..inventory.hosts import ClusterInventory
from ..lifecycle.operations.rotate import Rotated
from ..lifecycle.outcome import Exit
from ..lifecycle.progress import Reporter
from ..lifecycle.run import Run
from ..lifecycle.ssh import SshSession
from .options import Format
from .render.document import document
from .render.operations import rotated_text
from .render.output import say
from .render.progress import open_progress

Rotate: TypeAlias = Callable[[Run, ClusterInventory, SshSession, Reporter], Rotated]


def rotated(cluster: str, fmt: Format, what: str, rotate: Rotate) -> Exit:
    """Make keys of a running cluster anew while nobody else changes it; say who has them."""
    from ..lifecycle.cluster import open_cluster
    from ..lifecycle.run import Run
    from ..lifecycle.sites import existing_hosts
    from ..lifecycle.ssh import SshSession
    from ..lifecycle.state import acquire

    opened = open_cluster(cluster, running=True)
    hosts = existing_hosts(opened)
    opened.identify()
    with (
        open_progress(fmt.value) as report,
        SshSession(opened.workdir) as session,
        acquire(opened.store, tuple(opened.spec.sites), reason=f"rotate {what}") as lock,
        Run(opened, f"rotate {what}", lock) as run,
    ):
        result = rotate(run, hosts, session, report)
        run.finish(result.exit_code)
    say(document(result) if fmt is Format.JSON else rotated_text(result))
    return result.exit_code
