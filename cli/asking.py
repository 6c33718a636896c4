"""Asking a person before something changes; where nobody can be asked, nothing is changed."""

from __future__ import annotations

import sys

from ..lifecycle.outcome import Exit, failure


def can_ask() -> bool:
    """Return whether a person sees what is written and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask_name(question: str, name: str, *, possible: bool = True) -> bool:
    """Ask on the terminal for a name to be typed; anything else is a no. Raises as `ask`."""
    return _answer(f"{question}\ntype {name} to do it: ", possible=possible) == name


def ask(question: str, *, possible: bool = True) -> bool:
    """Ask on the terminal; anything but a yes is a no.

    Args:
        question: what to ask.
        possible: False where an answer could not be given, e.g. when a program reads the output.

    Raises:
        LifecycleError: there is nobody to ask (exit code REFUSED).
    """
    return _answer(f"{question} [y/N] ", possible=possible).lower() in {"y", "yes"}


def _answer(prompt: str, *, possible: bool) -> str:
    """Return what is typed; "" at the end of input. Raises LifecycleError: nobody can type."""
    if not (possible and can_ask()):
        raise failure(
            "GC942",
            "nobody can be asked here: nothing was changed",
            hint="give --yes to do it without asking",
            exit_code=Exit.REFUSED,
        )
    try:
        return input(prompt).strip()
    except EOFError:
        return ""
