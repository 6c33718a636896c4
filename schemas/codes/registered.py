"""The register of codes: append-only, so that no code ever gets a second meaning."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .families import number_of
from .texts import FOLDER, read

REGISTER = FOLDER / "register.yaml"
_TOP = """\
# Every code that was ever used, with the version that it came with. A code is never taken out of
# this list and never used again for another meaning: one that is not given any more gets
# `retired: true` and `was:`, its summary. New ones are added by
# python -m gcluster.schemas.codes --write
"""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One code of the register."""

    code: str
    since: str
    """Version of gcluster that gave it first."""
    retired: bool = False
    was: str = ""
    """Summary of a retired code."""


def entries() -> list[Entry]:
    """Return the register as it is written, in its order."""
    return read("register.yaml", list[Entry])


def register() -> dict[str, Entry]:
    """Return the register by code."""
    return {entry.code: entry for entry in entries()}


def with_new(codes: Iterable[str], *, since: str) -> str:
    """Return the text of the register with the codes that it lacks."""
    known = entries()
    there = {entry.code for entry in known}
    new = [Entry(code=code, since=since) for code in codes if code not in there]
    ordered = sorted([*known, *new], key=lambda entry: number_of(entry.code))
    lines = [_line(entry) for entry in ordered]
    return _TOP + "\n".join(lines) + "\n"


def _line(entry: Entry) -> str:
    retired = f', retired: true, was: "{entry.was}"' if entry.retired else ""
    return f"- {{code: {entry.code}, since: {entry.since}{retired}}}"
