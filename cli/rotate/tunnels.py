"""`gcluster rotate tunnels`: other keys for the tunnels between sites."""

# ruff: noqa: PLC0415  # imported when the verb runs: help and other verbs need none of it

from ...lifecycle.outcome import Exit
from ..options import Format, OutputFormat, Target
from ..rotating import rotated


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Give the gateways between sites other keys; connections live on.

    A tunnel stands still until both of its ends have changed, which takes seconds. Nothing is
    changed where a gateway can't be reached. Exit code 3 when one was left: the next up mends it.
    """
    from ...lifecycle.operations.rotate import rotate_tunnels

    return rotated(cluster, fmt, "tunnels", rotate_tunnels)
