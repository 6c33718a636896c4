"""What output is written on: its width, whether it shows colour, whether it knows Unicode."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Literal, NamedTuple, TextIO, TypeAlias

Tone: TypeAlias = Literal["error", "warning", "note", "good", "strong", "faint", "gutter"]

_SGR: dict[Tone, str] = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "good": "32",
    "strong": "1",
    "faint": "2",
    "gutter": "1;34",
}
PIPE_WIDTH = 100
"""Columns assumed where no terminal says how many it has: constant, so that output is the same."""

_ASCII = str.maketrans({"✔": "ok", "✘": "!!", "…": "...", "·": "|", "→": "->"})


class Surface(NamedTuple):
    """How text must be shaped for where it goes."""

    width: int = PIPE_WIDTH
    colour: bool = False
    unicode: bool = True
    live: bool = False
    """Whether lines can be drawn over: a terminal that a person looks at."""

    def paint(self, tone: Tone, text: str) -> str:
        """Return the text in its tone; unchanged where there is no colour."""
        return f"\x1b[{_SGR[tone]}m{text}\x1b[0m" if self.colour and text else text

    def plain(self, text: str) -> str:
        """Return the text with marks that this surface can show."""
        return text if self.unicode else text.translate(_ASCII)


def surface_of(stream: TextIO) -> Surface:
    """Look at a stream and its environment (NO_COLOR, TERM, COLUMNS)."""
    terminal = stream.isatty()
    capable = terminal and os.environ.get("TERM", "") != "dumb"
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    return Surface(
        width=max(20, shutil.get_terminal_size().columns) if terminal else PIPE_WIDTH,
        colour=capable and not os.environ.get("NO_COLOR"),
        unicode=encoding.startswith("utf"),
        live=capable,
    )


def stdout() -> Surface:
    """Return the surface of standard output."""
    return surface_of(sys.stdout)


def stderr() -> Surface:
    """Return the surface of standard error."""
    return surface_of(sys.stderr)
