"""Findings as a person reads them: what, where, the line with a caret, and what to do instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...schemas.diagnostics import Diagnostic, Severity, Span
from .cells import printable
from .concealed import starred
from .excerpt import excerpt, source_lines
from .surface import Surface, Tone

_TONES: dict[Severity, Tone] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
}


def diagnostics_text(
    diagnostics: Iterable[Diagnostic], surface: Surface, sources: Mapping[str, str] | None = None
) -> str:
    """Return the findings as text, in the order given; "" for none.

    Args:
        diagnostics: what was found.
        surface: what it is written on.
        sources: file -> its text, for the excerpts.
    """
    told = list(diagnostics)
    split: dict[str, list[str]] = {}
    for diagnostic in told:
        file = diagnostic.file
        if file not in split and (text := (sources or {}).get(file)):
            split[file] = source_lines(text)
        if diagnostic.is_secret and diagnostic.span is not None:
            _mask(split.get(file, []), diagnostic.span)
    return "\n".join(line for diagnostic in told for line in _lines(diagnostic, surface, split))


def _mask(lines: list[str], span: Span) -> None:
    """Put asterisks over what may be a secret, for every excerpt of its line."""
    if 0 < span.line <= len(lines):
        line = lines[span.line - 1]
        lines[span.line - 1] = starred(line, span.column - 1, span.end_column - 1)


def _lines(diagnostic: Diagnostic, surface: Surface, sources: Mapping[str, list[str]]) -> list[str]:
    tone = _TONES[diagnostic.severity]
    title = surface.paint(tone, f"{diagnostic.severity}[{diagnostic.code}]")
    lines = [f"{title}: {surface.plain(printable(diagnostic.summary))}"]
    source = sources.get(diagnostic.file)
    if diagnostic.span is not None and source is not None:
        span = diagnostic.span
        place = f"{printable(diagnostic.file)}:{span.line}:{span.column}"
        gutter = " " * len(str(span.line))
        lines.append(f"{gutter}{surface.paint('gutter', '-->')} {place}")
        lines += excerpt(source, span, surface, tone)
    elif diagnostic.file:
        lines.append(f" {surface.paint('gutter', '-->')} {_place(diagnostic)}")
    lines += [
        f"  {surface.paint('gutter', '|')} {surface.plain(printable(line))}".rstrip()
        for line in diagnostic.detail.splitlines()
    ]
    if diagnostic.hint:
        lines.append(_help(diagnostic, surface))
    return lines


def _place(diagnostic: Diagnostic) -> str:
    """Return file, line and column; the start of a file stands for the file as a whole."""
    span = diagnostic.span
    exact = span is not None and (span.line, span.column) != (1, 1)
    return printable(diagnostic.file) + (f":{span.line}:{span.column}" if span and exact else "")


def _help(diagnostic: Diagnostic, surface: Surface) -> str:
    """Return the help line; the code of a check leads to its explanation."""
    first, *rest = diagnostic.hint.splitlines() or [""]
    is_check = diagnostic.code[:3] not in {"GC0", "GC9"}
    more = f"   (gcluster explain {diagnostic.code})" if is_check else ""
    text = f"  {surface.paint('note', 'help')}: {surface.plain(printable(first))}"
    text += surface.paint("faint", more)
    return "\n".join([text, *(f"        {surface.plain(printable(line))}" for line in rest)])


def summary_line(diagnostics: Iterable[Diagnostic]) -> str:
    """Return "2 errors, 1 warning"; "no findings" where there is none."""
    counts = dict.fromkeys(Severity, 0)
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += 1
    parts = [f"{n} {severity}{'' if n == 1 else 's'}" for severity, n in counts.items() if n]
    return ", ".join(parts) or "no findings"
