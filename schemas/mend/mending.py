"""Mend a spec as far as its findings say how: patch, load again, until nothing more can be done."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..diagnostics import Diagnostic
from ..load import Loaded, load_text
from .fixes import fixed_text

ROUNDS = 5
"""Most times that a text is patched: a mend may bring a further mistake to light."""


class Mended(NamedTuple):
    """A spec before and after."""

    before: Loaded
    after: Loaded
    applied: tuple[Diagnostic, ...]
    """What was mended; places are those of the text at that round."""

    @property
    def is_changed(self) -> bool:
        """Whether the text is another."""
        return self.after.text != self.before.text


def mend(loaded: Loaded) -> Mended:
    """Return the spec as it is when everything that can be mended is; no file is written."""
    after = loaded
    applied: tuple[Diagnostic, ...] = ()
    for _ in range(ROUNDS):
        fixed = fixed_text(after.text, after.diagnostics)
        if not fixed.applied or fixed.text == after.text:
            break
        applied = (*applied, *fixed.applied)
        after = load_text(fixed.text, file=loaded.file, folder=Path(loaded.file).parent)
    return Mended(before=loaded, after=after, applied=applied)
