"""What would change in a file, as a unified diff."""

from __future__ import annotations

from difflib import unified_diff

from ...schemas.fix.apply import Mended
from .cells import printable
from .excerpt import source_lines
from .surface import Surface, Tone

_TONES: dict[str, Tone] = {"-": "error", "+": "good", "@": "note"}


def diff_text(file: str, before: str, after: str, surface: Surface) -> str:
    """Return the diff from `before` to `after`; "" when they are the same."""
    lines = list(
        unified_diff(source_lines(before), source_lines(after), file, file, lineterm="", n=2)
    )
    return "\n".join(_line(line, surface, head=place < 2) for place, line in enumerate(lines))  # noqa: PLR2004  # the two lines that name the file


def _line(line: str, surface: Surface, *, head: bool) -> str:
    text = line[:1] + surface.plain(printable(line[1:]))
    if head:
        return surface.paint("strong", text)
    tone = _TONES.get(line[:1])
    return text if tone is None else surface.paint(tone, text)


def mended_text(mended: Mended, surface: Surface, *, written: bool) -> str:
    """Return the diff of one spec and a line that says how much of it was found and mended."""
    file, count = mended.before.file, len(mended.applied)
    verb = "mended" if written else "would be mended"
    findings = f"{count} finding{'' if count == 1 else 's'}"
    how = "" if written else " (write with --fix --write); what is then left:"
    diff = diff_text(file, mended.before.text, mended.after.text, surface)
    return f"{diff}\n\n{printable(file)}: {findings} {verb}{how}\n"
