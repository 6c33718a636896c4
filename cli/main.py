"""The entry point of `gcluster`: starts as little as it can, and ends at once where it may."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command line; never returns.

    Start-up makes many objects and no garbage, so nothing is collected until a verb that takes
    longer switches that on again; verbs that only read and print end without the interpreter's
    clean-up. Of a short `validate` the two are a quarter (bench/validate_cold.py).
    """
    gc.disable()
    from . import ending  # noqa: PLC0415  # after gc.disable
    from .app import command  # noqa: PLC0415  # as above
    from .verbs import is_quick  # noqa: PLC0415  # as above

    ending.catch_signals()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # real streams
    try:
        command().main(prog_name="gcluster")
    except SystemExit as end:
        if is_quick(sys.argv[1:]):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(end.code or 0))
        raise
