"""Apply fixes to a text until nothing more can be fixed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ...diagnostics import Diagnostic, Patch
from ...load import Loaded, load_text
from ..compose import compose
from ..document import line_starts

ROUNDS = 5
"""Most times that a text is patched: a fix may bring a further mistake to light."""


class FixedSpec(NamedTuple):
    """A spec before and after."""

    before: Loaded
    after: Loaded
    applied: tuple[Diagnostic, ...]
    """What was fixed; places are those of the text at that round."""

    @property
    def is_changed(self) -> bool:
        """Whether the text is another."""
        return self.after.text != self.before.text


def apply_fixes(loaded: Loaded) -> FixedSpec:
    """Return the spec as it is when everything that can be fixed is; no file is written."""
    after = loaded
    applied: tuple[Diagnostic, ...] = ()
    for _ in range(ROUNDS):
        fixed = fixed_text(after.text, after.diagnostics)
        if not fixed.applied or fixed.text == after.text:
            break
        applied = (*applied, *fixed.applied)
        after = load_text(fixed.text, file=loaded.file, folder=Path(loaded.file).parent)
    return FixedSpec(before=loaded, after=after, applied=applied)


_Edit: TypeAlias = tuple[int, int, str]
"""Start, end, and the text between them afterwards."""


class Fixed(msgspec.Struct, frozen=True, kw_only=True):
    """A text after its patches."""

    text: str
    applied: tuple[Diagnostic, ...]
    """Those whose patch is in the text."""
    left: tuple[Diagnostic, ...]
    """The others: without a patch, overlapping an earlier one, or leaving no readable YAML."""


def fixed_text(text: str, diagnostics: Iterable[Diagnostic]) -> Fixed:
    """Apply the patches that do not overlap; everything outside their spans stays as it is.

    The result reads as YAML at least as well as the text did: a patch that would change that is
    left. Of two that overlap the first counts; equal ones are one.

    Args:
        text: what the diagnostics were found in.
        diagnostics: of this text only.
    """
    found = list(diagnostics)
    starts = line_starts(text)
    wanted: dict[_Edit, None] = {}
    edits: dict[int, _Edit] = {}
    for index, diagnostic in enumerate(found):
        edit = _edit(diagnostic.patch, text, starts) if diagnostic.patch else None
        if edit is not None:
            wanted[edit] = None
            edits[index] = edit
    problems = _problems(text)
    kept = _settled(text, [], _apart(wanted), problems)
    chosen = set(kept)
    done = {index for index, edit in edits.items() if edit in chosen}
    return Fixed(
        text=_applied(text, kept),
        applied=tuple(d for index, d in enumerate(found) if index in done),
        left=tuple(d for index, d in enumerate(found) if index not in done),
    )


def _edit(patch: Patch, text: str, starts: Sequence[int]) -> _Edit | None:
    """Return the offsets of a patch, or None when it is of another text."""
    span = patch.span
    if not (0 < span.line <= len(starts) and 0 < span.end_line <= len(starts)):
        return None
    start = starts[span.line - 1] + span.column - 1
    end = starts[span.end_line - 1] + span.end_column - 1
    of_this_text = start <= end <= len(text) and bisect_right(starts, start) == span.line
    return (start, end, patch.replacement) if of_this_text else None


def _apart(edits: Iterable[_Edit]) -> list[_Edit]:
    """Return the edits that overlap no earlier one, in the order of the text.

    Insertions at one place are side by side, and next to an edit that ends or starts there.
    """
    taken: list[_Edit] = []
    reach = -1
    for edit in sorted(edits, key=lambda edit: edit[:2]):  # stable: insertions keep their order
        if edit[0] >= reach:
            taken.append(edit)
            reach = edit[1]
    return taken


def _settled(text: str, sure: list[_Edit], new: list[_Edit], problems: int) -> list[_Edit]:
    """Return `sure` and those of `new`, which follow them, that leave a readable text.

    Halves find the others.
    """
    if not new or _problems(_applied(text, [*sure, *new])) <= problems:
        return [*sure, *new]
    if len(new) == 1:
        return sure
    middle = len(new) // 2
    first = _settled(text, sure, new[:middle], problems)
    return _settled(text, first, new[middle:], problems)


def _applied(text: str, edits: Iterable[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, replacement in edits:
        parts += [text[at:start], replacement]
        at = end
    return "".join([*parts, text[at:]])


def _problems(text: str) -> int:
    """Count what keeps a text from being read as one YAML mapping."""
    composed = compose(text, file="")
    readable = composed.document is not None and isinstance(composed.document.data, dict)
    return len(composed.diagnostics) + (0 if readable else 1_000_000)
