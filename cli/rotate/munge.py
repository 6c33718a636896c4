"""`gcluster rotate munge`: another MUNGE key, with no job lost."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from typing import TYPE_CHECKING

from ...inventory.hosts import ClusterInventory
from ...lifecycle.operations.selection import refuse_kubernetes
from ...lifecycle.outcome import Exit
from ...lifecycle.progress import Reporter
from ..options import Format, OutputFormat, Target
from ..rotating import rotated

if TYPE_CHECKING:
    from ...lifecycle.operations.rotate import Rotated
    from ...lifecycle.run import Run
    from ...lifecycle.ssh import SshSession


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Give every machine another MUNGE key; running jobs go on.

    For the seconds of the change commands of Slurm may be refused. Exit code 3 when a machine could
    not be reached: the next up gives it the new key.
    """
    from ...lifecycle.operations.rotate import rotate_munge
    from ...lifecycle.scheduler.select import scheduler_of

    def rotate(
        run: "Run", hosts: "ClusterInventory", session: "SshSession", report: "Reporter"
    ) -> "Rotated":
        why = "has no MUNGE key: its nodes know each other by certificates"
        refuse_kubernetes(run.cluster.spec, why, hint="control planes renew them, each week")
        service = scheduler_of(run.cluster.spec, hosts, session)
        return rotate_munge(hosts, session, run.cluster.vault, service, report)

    return rotated(cluster, fmt, "munge", rotate)
