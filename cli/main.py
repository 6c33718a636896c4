"""The entry point of `gcluster`."""

from __future__ import annotations

import atexit
import gc
import os
import sys

# All objects that a start makes stay: looking through them for cycles every 700 finds nothing and
# is a twentieth of a short command. mypy does the same, for the same reason.
gc.set_threshold(100_000)

from . import ending  # noqa: E402
from .app import command  # noqa: E402


def main() -> None:
    """Run the command line; ends the process with the exit code of what happened."""
    _open_closed_streams()
    # At its end Python would look through all objects for cycles, several times: a sixth of a short
    # command. Files are closed and streams flushed all the same.
    atexit.register(gc.freeze)
    ending.catch_signals()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # real streams
    command().main(prog_name="gcluster")


def _open_closed_streams() -> None:
    """Let a stream that the caller closed (`>&-`) lead nowhere.

    Its number would else be given to the next file that is opened, and what is printed written
    into that.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
