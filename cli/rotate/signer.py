"""`gcluster rotate signer`: sign what nodes converge themselves to with another key."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from functools import partial

from ...lifecycle.outcome import Exit
from ..options import Format, OutputFormat, Target
from ..rotating import rotated


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Sign what nodes converge themselves to with another key.

    Nodes are told the new key over SSH; one that is off takes nothing until the next up tells it.
    Nothing is changed where one can't be reached.
    """
    from ...lifecycle.operations.rotate import rotate_secret

    return rotated(cluster, fmt, "signer", partial(rotate_secret, word="signer"))
