"""How a command ended, for people and pipelines: one meaning per exit code."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from ...schemas.diagnostics import Diagnostic, Severity
from ...stacks.io import atomic


class Exit(IntEnum):
    """Exit codes of the command line; documented in docs/exit-codes.md."""

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
    """A command could not continue. `diagnostics` has what happened, why and what to do next."""

    def __init__(self, *diagnostics: Diagnostic, exit_code: Exit = Exit.FAILED) -> None:
        """Set the findings and the exit code of their kind."""
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


_UTF8_MARK = b"\xef\xbb\xbf"


def rewrite(file: str, before: str, after: str) -> None:
    """Put `after` in the place of `before`; permissions, a byte order mark and links stay.

    Raises:
        LifecycleError: the file holds something else by now; it is left as it is.
        OSError: it can't be read or written.
    """
    path = Path(file).resolve()
    content = path.read_bytes()
    mark = _UTF8_MARK if content.startswith(_UTF8_MARK) else b""
    if content != mark + before.encode():
        raise failure(
            "GC952",
            f"{file} was changed by something else in the meantime; it is left as it is",
            hint="run the same command again",
            exit_code=Exit.FAILED,
        )
    atomic.write(path, mark + after.encode(), mode=path.stat().st_mode & 0o7777)
