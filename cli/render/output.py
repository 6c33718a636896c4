"""Writing to standard output: in the stream's own encoding, what it lacks shown as escapes."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Write a text and end its line, at once: progress and results share one order.

    typer's echo would write UTF-8 to a terminal that said it knows only ASCII.
    """
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
