"""Read a file as text, and report what keeps it from being YAML."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from ..diagnostics import Diagnostic, Severity, Span
from .document import Composed

if TYPE_CHECKING:
    from yaml.error import MarkedYAMLError

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


_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # YAML 1.2, c-printable
)

_PLAIN_WORDS = {
    "mapping values are not allowed in this context": (
        'a second ": " where only one key and value is allowed',
        'put text that holds ": " in quotes, or fix the indentation of this line',
    ),
    "could not find expected ':'": (
        'a key without its ":"',
        "each line of a mapping is key: value, with a space after the colon",
    ),
    "did not find expected key": (
        "this line fits neither the block above it nor the one around it",
        "lines of one block start in the same column; text with special characters needs quotes",
    ),
    "did not find expected ',' or '}'": (
        'the "{" of line {line} is not closed here',
        'separate entries by "," and close with "}"',
    ),
    "did not find expected ',' or ']'": (
        'the "[" of line {line} is not closed here',
        'separate items by "," and close with "]"',
    ),
    "did not find expected '-' indicator": (
        "this line is not an item of the list above it",
        'items of one list start with "- " in the same column',
    ),
    "found unexpected end of stream": (
        "the quote opened in line {line} is never closed",
        "add the closing quote",
    ),
    "found character that cannot start any token": (
        "text can't start with {character} unless it is quoted",
        "put the value in quotes",
    ),
    "did not find expected alphabetic or numeric character": (
        'a "*" or "&" without a name',
        'text that starts with "*" or "&" needs quotes',
    ),
    "found unknown escape character": (
        "a backslash that means nothing in double quotes",
        "use single quotes, or write two backslashes",
    ),
    "found undefined tag handle": (
        "a tag that nothing defines",
        "a spec is plain data: write the value without a tag",
    ),
    "block sequence entries are not allowed in this context": (
        'a list item ("- ") is not allowed here',
        "start the list on a line of its own, under its key",
    ),
}


_FAR_FROM_CAUSE = frozenset({"found unexpected end of stream", "could not find expected ':'"})
"""Problems noticed long after the quote or key that they are about."""


def report_syntax(result: Composed, text: str, error: MarkedYAMLError) -> None:
    """Report where the parser stopped, why, and what to write."""
    mark = error.problem_mark or error.context_mark
    place = min(mark.index, len(text)) if mark else 0
    if _is_tab(text, place):
        result.report(
            "GC011",
            "a tab in the indentation: YAML indents by spaces only",
            text.find("\t", text.rfind("\n", 0, place) + 1),
            place + 1,
            "replace the tab by two spaces",
        )
        return
    problem = error.problem or "the text can't be read"
    summary, hint = _PLAIN_WORDS.get(problem, (problem, ""))
    opened = error.context_mark.index if error.context_mark else place
    if problem in _FAR_FROM_CAUSE:
        place = opened
    fix = None
    range_start = _unquoted_range(text, place)
    if range_start is not None:
        place, summary = range_start, "a host range inside { } or [ ] needs quotes"
        written = f"{text[place : place + 200].split(']', 1)[0]}]"
        hint, fix = f'write "{written}"', (place + len(written), f'"{written}"')
    summary = summary.replace("{line}", str(result.line_of(opened)))
    summary = summary.replace("{character}", repr(text[place : place + 1]))
    result.report("GC010", f"not valid YAML: {summary}", place, place + 1, hint, fix=fix)


def _unquoted_range(text: str, place: int) -> int | None:
    """Return where gpu[001-064] starts when its bracket is what the parser stumbled over."""
    if not re.match(r"\[[0-9,-]+\]", text[place : place + 100]):
        return None
    name = re.search(r"[A-Za-z][A-Za-z0-9.-]*$", text[max(0, place - 100) : place])
    return place - len(name[0]) if name else None


def _is_tab(text: str, place: int) -> bool:
    """Say whether a tab is in the white space that the parser stopped in or after."""
    line_start = text.rfind("\n", 0, place) + 1
    indentation = re.match(r"[ \t]*", text[line_start:])
    return "\t" in (indentation[0] if indentation else "") or text[place : place + 1] == "\t"


def report_character(result: Composed, text: str) -> None:
    """Report the first character that YAML does not allow in a text."""
    match = _UNPRINTABLE.search(text)
    place = match.start() if match else 0
    shown = f"U+{ord(text[place]):04X}" if match else "a character"
    result.report(
        "GC017",
        f"{shown} is not a text character",
        place,
        place + 1,
        "is this the right file? A spec is text in UTF-8",
    )


_LIKE_LATIN = dict(
    zip(
        "аеорсухіјѕАВЕКМНОРСТХІЈЅοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",  # noqa: RUF001  # Cyrillic and Greek
        "aeopcyxijsABEKMHOPCTXIJSoABEZHIKMNOPTYX",
        strict=True,
    )
)
"""Letters that fonts draw as those of Latin: of Unicode's confusables (UTS 39) those that keyboards
have."""
_INVISIBLE = frozenset({"Zs", "Cf"})
"""Categories of spaces other than the usual one, and of marks that nothing is drawn for."""


def look_alike(text: str) -> str:
    """Return a sentence that names the first character which is not what it looks like; else ""."""
    for character in text:
        if character.isascii():
            continue
        name = f"a {unicodedata.name(character, 'character').lower()} (U+{ord(character):04X})"
        if character in _LIKE_LATIN:
            return f'it has {name} for "{_LIKE_LATIN[character]}"'
        plain = unicodedata.normalize("NFKC", character)
        if plain.isascii() and plain.isalnum():  # full-width letters, superscripts
            return f'it has {name} for "{plain}"'
        if unicodedata.category(character) in _INVISIBLE:
            return f"it has {name}: write a space, or nothing"
    return ""
