"""Findings as workflow commands of GitHub Actions: annotations beside the lines of a change.

Form and escapes: docs.github.com, "Workflow commands for GitHub Actions" (read 2026-11-21).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...schemas.diagnostics import Diagnostic, Severity
from .cells import printable
from .places import shown

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def workflow_commands(found: Iterable[Diagnostic]) -> Iterator[str]:
    """Yield one command a finding, each on one line."""
    for each in found:
        properties: dict[str, object] = {}
        if each.file:
            properties["file"] = shown(each.file)
        if each.span is not None:
            span = each.span
            properties |= {"line": span.line, "endLine": span.end_line}
            if span.line == span.end_line:  # columns of several lines are refused
                properties |= {"col": span.column, "endColumn": span.end_column}
        properties["title"] = each.code
        written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        yield f"::{_COMMANDS[each.severity]} {written}::{_data(_message(each))}"


def _message(found: Diagnostic) -> str:
    help_line = f"help: {found.hint}" if found.hint else ""
    text = "\n".join(part for part in (found.summary, found.detail, help_line) if part)
    return "\n".join(map(printable, text.split("\n")))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
