"""docs/diagnostics.md, generated: every code with its summary, family by family."""

from __future__ import annotations

from pathlib import Path

from .families import FAMILIES, family_of
from .known import explanations, retired

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "diagnostics.md"
_TOP = """\
# Codes of errors and warnings

A code never changes its meaning and is never used again for another. The message itself says what
was found, where, and what to write instead. This page says what a code stands for;
`gcluster explain CODE` says why the rule is there, and shows an example of the mistake with its
correction. `gcluster validate --fix` mends those that have one right answer.

This page is generated from the program by `python -m gcluster.schemas.codes --write`.
"""
_HEAD = "| code | what it means |\n| --- | --- |\n"


def render() -> str:
    """Return the text of the page."""
    known = explanations().values()
    parts = [_TOP]
    for family in FAMILIES:
        rows = [f"| {k.code} | {k.summary} |\n" for k in known if family_of(k.code) is family]
        if rows:
            title = f"## {family.title} (GC{family.hundred})\n\n"
            parts.append(f"{title}About {family.about}.\n\n{_HEAD}{''.join(rows)}")
    gone = [f"| {code} | {was} |\n" for code, was in sorted(retired().items())]
    if gone:
        parts.append(f"## Not given any more\n\n{_HEAD}{''.join(gone)}")
    return "\n".join(parts)
