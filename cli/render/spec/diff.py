"""Diffs of specs, and of what `validate --fix` changes in one."""

from __future__ import annotations

from difflib import unified_diff

from ....schemas.structure.fix.apply import FixedSpec
from ...console import Console, Tone, printable
from ..diagnostics import source_lines

_DIFF_TONES: dict[str, Tone] = {"-": "error", "+": "good", "@": "note"}


def diff_text(file: str, before: str, after: str, console: Console) -> str:
    """Return the diff from `before` to `after`; "" when they are the same."""
    lines = list(
        unified_diff(source_lines(before), source_lines(after), file, file, lineterm="", n=2)
    )
    return "\n".join(_line(line, console, head=place < 2) for place, line in enumerate(lines))  # noqa: PLR2004  # the two lines that name the file


def _line(line: str, console: Console, *, head: bool) -> str:
    text = line[:1] + console.plain(printable(line[1:]))
    if head:
        return console.paint("strong", text)
    tone = _DIFF_TONES.get(line[:1])
    return text if tone is None else console.paint(tone, text)


def fixes_text(fixed: FixedSpec, console: Console, *, written: bool) -> str:
    """Return the diff of one spec and a line that says how much of it was found and fixed."""
    file, count = fixed.before.file, len(fixed.applied)
    verb = "fixed" if written else "would be fixed"
    findings = f"{count} finding{'' if count == 1 else 's'}"
    how = "" if written else " (write with --fix --write); what is then left:"
    diff = diff_text(file, fixed.before.text, fixed.after.text, console)
    return f"{diff}\n\n{printable(file)}: {findings} {verb}{how}\n"
