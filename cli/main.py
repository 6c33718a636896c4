"""The entry point of `gcluster`."""

from __future__ import annotations

import sys

from . import ending
from .app import command


def main() -> None:
    """Run the command line; ends the process with the exit code of what happened."""
    ending.catch_signals()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # real streams
    command().main(prog_name="gcluster")
