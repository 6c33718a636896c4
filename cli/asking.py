"""Asking a person before something changes; where nobody can be asked, nothing is changed."""

from __future__ import annotations

import sys

import typer

from gcluster.lifecycle.outcome import Exit, failure


def ask(question: str, *, possible: bool = True) -> bool:
    """Ask on the terminal; anything but a yes is a no.

    Args:
        question: what to ask.
        possible: False where an answer could not be given, e.g. when a program reads the output.

    Raises:
        LifecycleError: there is no terminal to ask on (exit code REFUSED).
    """
    if not (possible and sys.stdin.isatty() and sys.stdout.isatty()):
        raise failure(
            "GC942",
            "nobody can be asked here: nothing was changed",
            hint="look at the plan, then give --yes",
            exit_code=Exit.REFUSED,
        )
    return typer.confirm(question, default=False)
