"""`gcluster rotate munge`: another MUNGE key, with no job lost."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from gcluster.cli.options import Format, OutputFormat, Target
from gcluster.lifecycle.outcome import Exit


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Give every machine another MUNGE key; running jobs go on.

    For the seconds of the change commands of Slurm may be refused. Exit code 3 when a machine could
    not be reached: the next up gives it the new key.
    """
    from gcluster.cli.rotating import rotated
    from gcluster.lifecycle.operations.rotate_munge import rotate_munge

    return rotated(
        cluster,
        fmt,
        "munge",
        lambda run, hosts, session, report: rotate_munge(hosts, session, run.cluster.vault, report),
    )
