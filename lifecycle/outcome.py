"""How a command ended, for people and pipelines: one meaning per exit code."""

from __future__ import annotations

from enum import IntEnum

from ..schemas.diagnostics import Diagnostic, Severity


class Exit(IntEnum):
    """Exit codes of the command line; docs/exit-codes.md tells them to users."""

    OK = 0
    FAILED = 1
    SPEC = 2
    PENDING = 3
    REFUSED = 4
    LEFTOVERS = 5
    LOCKED = 6
    USAGE = 64
    INTERRUPTED = 130


class LifecycleError(Exception):
    """A command could not go on. `diagnostics` say what, why and what to do next."""

    def __init__(self, *diagnostics: Diagnostic, exit_code: Exit = Exit.FAILED) -> None:
        """Hold the findings and the exit code that tells their kind."""
        super().__init__(diagnostics[0].summary if diagnostics else "failed")
        self.diagnostics = diagnostics
        self.exit_code = exit_code


def failure(
    code: str, summary: str, *, detail: str = "", hint: str = "", exit_code: Exit = Exit.FAILED
) -> LifecycleError:
    """Build the error for one finding that has no place in the spec."""
    return LifecycleError(
        Diagnostic(code=code, severity=Severity.ERROR, summary=summary, detail=detail, hint=hint),
        exit_code=exit_code,
    )
