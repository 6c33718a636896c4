"""`gcluster rotate database`: give the database of Slurm's accounts another password."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from functools import partial

from ...lifecycle.outcome import Exit
from ..options import Format, OutputFormat, Target
from ..rotating import rotated


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Give the database of Slurm's accounts another password.

    slurmdbd starts anew with it; jobs go on. Nothing is changed where its host can't be reached. A
    password that the spec refers to is yours to change.
    """
    from ...lifecycle.operations.rotate import rotate_secret

    return rotated(cluster, fmt, "database", partial(rotate_secret, word="database"))
