"""What a check says: a finding keeps the node from jobs, a note does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with the node."""

    code: str
    """Stable word for it: gpu-count, xid, mount-hung ..."""
    message: str
    """In words, with the part and the figure."""
    drains: bool = True
    """False: worth a note; jobs may go on."""


class CheckIncomplete(Exception):  # noqa: N818  # no error of the program: the answer is missing
    """Something that must be looked at could not be: counts as a failure (fail closed)."""


def note(code: str, message: str) -> Finding:
    """Return a finding that keeps no job away."""
    return Finding(code=code, message=message, drains=False)
