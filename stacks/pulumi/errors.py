"""What a cloud's refusal means: which resource, why, and what to do next; its own words stay."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ...schemas.decoding import decode_yaml
from ...schemas.diagnostics import Diagnostic, Severity

Cause: TypeAlias = Literal["locked", "expired", "capacity", "quota", "permission", "other"]
NO_CAPACITY = "GC960"
"""Code on which a fallback ladder steps to its next rung."""


class _CauseText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    code: str
    summary: str


class _Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cause: Cause
    pattern: str
    next: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    causes: dict[Cause, _CauseText]
    patterns: list[_Pattern]


def translate(message: str, *, resource: str = "") -> Diagnostic:
    """Return a diagnostic for what the engine or a cloud said.

    `resource` ("Instance demo-east-gpu-0") leads the summary; the whole message is the detail.
    """
    lead = f"{resource}: " if resource else ""
    for pattern in _table().patterns:
        found = _compiled(pattern.pattern).search(message)
        if found:
            text = _table().causes[pattern.cause]
            summary = f"{lead}{text.summary}{_about(found.groupdict())}"
            return _diagnostic(text.code, summary, message, hint=pattern.next)
    text = _table().causes["other"]
    summary = f"{lead}{text.summary}: {first_line(message)}"
    hint = (
        "the message is the cloud's own; what was made is kept, and `gcluster up` goes on from it"
    )
    return _diagnostic(text.code, summary, message, hint=hint)


def cause(diagnostic: Diagnostic) -> Cause | None:
    """Return the cause that a diagnostic of `translate` tells, None for others."""
    for name, text in _table().causes.items():
        if text.code == diagnostic.code:
            return name
    return None


def first_line(message: str) -> str:
    """Return the first line that says something, without the engine's decoration."""
    for line in message.splitlines():
        said = line.strip().removeprefix("error:").lstrip("* ").strip()
        if said and not re.fullmatch(r"\d+ errors? occurred:|code: \d+|std(out|err):", said):
            return said
    return "it gave no reason"


def _about(groups: dict[str, str | None]) -> str:
    what, where = groups.get("what"), groups.get("where")
    about = " in ".join(part.strip() for part in (what, where) if part)
    return f" ({about})" if about else ""


def _diagnostic(code: str, summary: str, message: str, *, hint: str) -> Diagnostic:
    return Diagnostic(
        code=code, severity=Severity.ERROR, summary=summary, detail=message.strip(), hint=hint
    )


@cache
def _table() -> _Table:
    """Return what all clouds say, the patterns of a cloud's own folder first."""
    here = Path(__file__).parent
    shared = decode_yaml((here / "errors.yaml").read_bytes(), _Table)
    own = [
        pattern
        for file in sorted(here.parent.glob("*/errors.yaml"))
        if file.parent != here
        for pattern in decode_yaml(file.read_bytes(), list[_Pattern])
    ]
    return msgspec.structs.replace(shared, patterns=[*own, *shared.patterns])


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)
