"""Get the text of a file: bounded, UTF-8, and every reason why not as a diagnostic."""

from __future__ import annotations

from pathlib import Path

from ..diagnostics import Diagnostic, Severity, Span

MAX_BYTES = 8_000_000
"""Largest file that is read: 8 MB, about 150,000 hosts with one line each."""

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_START = Span(line=1, column=1, end_line=1, end_column=2)


def read_source(path: Path) -> bytes | Diagnostic:
    """Read a file, or say why it can't be read; never reads more than MAX_BYTES + 1."""
    file = str(path)
    try:
        if path.is_dir():
            return _problem("GC021", f"{file} is a directory, not a file", file)
        if path.stat().st_size > MAX_BYTES:
            return _too_large(file)
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return _problem(
            "GC021", f"{file} does not exist", file, "gcluster init writes a first spec"
        )
    except PermissionError:
        return _problem("GC021", f"{file} can't be read: permission denied", file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return _problem("GC021", f"{file} can't be read: {reason}", file)
    return content


def decode(content: str | bytes, *, file: str) -> str | Diagnostic:
    """Return the text without a byte order mark, or say why it is no text."""
    if isinstance(content, str):
        text = content.removeprefix("\ufeff")
        if len(text) > MAX_BYTES:
            return _too_large(file)
    else:
        if len(content) > MAX_BYTES:
            return _too_large(file)
        if content.startswith(_UTF16_MARKS):
            return _problem("GC017", f"{file} is UTF-16, not UTF-8", file, "save it as UTF-8")
        try:
            text = content.removeprefix(_UTF8_MARK).decode()
        except UnicodeDecodeError as error:
            if b"\0" not in content:
                return _not_utf8(content, error, file)
            text = "\0"
    if "\0" in text:
        return _problem(
            "GC017", f"{file} is a binary file, not text", file, "is this the right file?"
        )
    return text


def _not_utf8(content: bytes, error: UnicodeDecodeError, file: str) -> Diagnostic:
    before = content[: error.start].removeprefix(_UTF8_MARK).decode()
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Diagnostic(
        code="GC017",
        severity=Severity.ERROR,
        summary=f"byte 0x{content[error.start]:02X} is not UTF-8 text",
        file=file,
        span=Span(line=line, column=column, end_line=line, end_column=column + 1),
        hint="save the file as UTF-8",
    )


def _too_large(file: str) -> Diagnostic:
    return _problem(
        "GC020",
        f"{file} is larger than {MAX_BYTES // 1_000_000} MB, the most a spec may have",
        file,
        "name hosts by ranges, such as gpu[0001-4096]",
    )


def _problem(code: str, summary: str, file: str, hint: str = "") -> Diagnostic:
    return Diagnostic(
        code=code, severity=Severity.ERROR, summary=summary, file=file, span=_START, hint=hint
    )
