"""`gcluster rotate jwt`: make the key of slurmrestd's tokens anew; tokens from before are void."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from functools import partial

from ...lifecycle.outcome import Exit
from ..options import Format, OutputFormat, Target
from ..rotating import rotated


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Make the key of slurmrestd's tokens anew; tokens from before are void.

    Clients of slurmrestd need new tokens (scontrol token). Nothing is changed where a host can't be
    reached. Exit code 3 when one was left: the next up mends it.
    """
    from ...lifecycle.operations.rotate import rotate_secret

    return rotated(cluster, fmt, "jwt", partial(rotate_secret, word="jwt"))
