"""What a check is, and the list of all of them: `@check` puts a function on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from ..diagnostics import PathTuple, Severity
from ..mend.fix import Fix
from .context import CheckContext


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check says about one place, in the coordinates of the checked parts."""

    summary: str
    path: PathTuple
    hint: str = ""
    detail: str = ""
    severity: Severity = Severity.ERROR
    at_key: bool = False
    """Point at the key, not at the value."""
    relies_on: tuple[PathTuple, ...] = ()
    """Paths this finding is drawn from ("*": any entry); silent when one of them is broken.
    Empty: the path alone."""
    meant: str | None = None
    """The right word for the value at `path`, where there is one: short for a Replace."""
    is_secret: bool = False
    """What stands there may hold a secret: it is never shown."""
    fix: Fix | None = None
    """How a machine mends it, where that is certain; paths in the coordinates of the parts."""


CheckFunction: TypeAlias = "Callable[[CheckContext], Iterator[Finding]]"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of meaning."""

    code: str
    summary: str
    """One sentence for a table of codes."""
    explanation: str
    """A paragraph: why the rule is there and what to do; the function's docstring."""
    run: CheckFunction


CHECKS: dict[str, Check] = {}
"""Every check by its code."""


def check(code: str, *, summary: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check; its docstring is the explanation people read.

    Raises:
        ValueError: the code is taken.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if code in CHECKS:
            raise ValueError(f"{code} is taken by {CHECKS[code].run.__name__}")
        explanation = " ".join((function.__doc__ or "").split())
        CHECKS[code] = Check(code=code, summary=summary, explanation=explanation, run=function)
        return function

    return register
