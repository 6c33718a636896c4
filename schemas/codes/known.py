"""What each code means: a sentence for tables and a paragraph to read."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..checks import CHECKS
from ..fleet import FLEET_CODES
from ..policies import POLICY_CODES
from .families import number_of
from .registered import register
from .texts import TEXTS, Text, read


class CodeExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a code means."""

    code: str
    summary: str
    explanation: str
    is_check: bool = False
    """Whether it is a rule of meaning for one spec: those have an example."""


def explanations() -> dict[str, CodeExplanation]:
    """Return every code that gcluster gives, in order; retired ones are not among them."""
    return {known.code: known for known in sorted(_all(), key=lambda known: number_of(known.code))}


def retired() -> dict[str, str]:
    """Return the retired codes and what they meant."""
    return {entry.code: entry.was for entry in register().values() if entry.retired}


def _all() -> Iterator[CodeExplanation]:

    for code, rule in CHECKS.items():
        yield CodeExplanation(
            code=code, summary=rule.summary, explanation=rule.explanation, is_check=True
        )
    for name in TEXTS:
        for code, text in read(name, dict[str, Text]).items():
            yield CodeExplanation(code=code, summary=text.summary, explanation=text.explanation)
    for code, (summary, explanation) in (FLEET_CODES | POLICY_CODES).items():
        yield CodeExplanation(code=code, summary=summary, explanation=explanation)
