"""A line of a spec as it may be shown: what is written out where a secret seems to be is hidden.

A spec never holds a secret, so there is no field for one; whoever writes a password under a key
that doesn't exist should meet it neither in a terminal nor in the log of a pipeline.
"""

from __future__ import annotations

import re

from ...schemas.spec.model import SECRET_PATTERN

_KEY = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|token|credential|(?:api|private|access)[_-]?key)"
    r"[\w-]{0,64}[\"']?[ \t]{0,64}:(?=[ \t\"'])[ \t]*",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^']|'')*'?")
_IN_FLOW = re.compile(r"[^,}\]]*")
_PLAIN = re.compile(r"(?:(?! #).)*")
_REFERENCE = re.compile(SECRET_PATTERN)


def concealed(line: str) -> str:
    """Return the line with asterisks over such values; it stays as long as it was.

    References ("env:NAME"), maps and lists are shown: they are no secrets.
    """
    shown = line
    for key in _KEY.finditer(line):
        value = _value(line, key.end())
        if value and value[0] not in "{[&*|>#" and not _REFERENCE.match(value.strip("\"'")):
            shown = starred(shown, key.end(), key.end() + len(value))
    return shown


def starred(line: str, start: int, end: int) -> str:
    """Return the line with asterisks in place of these characters."""
    return f"{line[:start]}{'*' * (end - start)}{line[end:]}"


def _value(line: str, at: int) -> str:
    quoted = _QUOTED.match(line, at)
    if quoted is not None:
        return quoted[0]
    flows = "{" in line[:at] or "[" in line[:at]
    found = (_IN_FLOW if flows else _PLAIN).match(line, at)
    return found[0].rstrip() if found is not None else ""
