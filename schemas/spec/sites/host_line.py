"""One machine in a line: [USER@]ADDRESS[:PORT] [USER [PORT]] [name=NAME], or an ssh command."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...structure.decoding import convert
from .bare_metal import ListedHost

_TARGET = (
    r"(?:([^@\s]+)@)?(?:\[([0-9A-Fa-f:]+)\]|([^:\s]+|[0-9A-Fa-f:]*::?[0-9A-Fa-f:]*))(?::(\d+))?"
)
_MOST_SHOWN = 60


def read_line(line: str) -> ListedHost | str:
    """Return the machine that a line names, or what is wrong with the line."""
    words = line.split("#", 1)[0].split()
    named = [word.removeprefix("name=") for word in words if word.startswith("name=")]
    words = [word for word in words if not word.startswith("name=")]
    if words[:1] == ["ssh"]:
        words = words[1:]
    target = re.fullmatch(_TARGET, words[0]) if words else None
    if target is None:
        return "it starts with no address"
    if len(words) > 3 or len(named) > 1:  # noqa: PLR2004  # address, user, port
        return "it has more words than ADDRESS USER PORT name=NAME"
    given = {"address": target[2] or target[3], "user": target[1], "port": target[4]}
    for key, word in zip(("user", "port"), words[1:], strict=False):
        if given[key] is not None:
            return f"it gives the {key} twice"
        given[key] = word
    if given["port"] is not None and not given["port"].isdigit():
        return f'"{given["port"][:_MOST_SHOWN]}" is no port'
    return host_of(
        {**given, "port": given["port"] and int(given["port"]), "name": named[0] if named else None}
    )


def host_of(found: dict[str, Any]) -> ListedHost | str:
    """Return the machine of these fields (None: not given), or which of them is wrong."""
    given = {key: value for key, value in found.items() if value is not None}
    try:
        return convert(given, ListedHost)
    except msgspec.ValidationError as error:
        key = str(error).rpartition("$.")[2].rstrip("`")
        return f'"{str(given.get(key, ""))[:_MOST_SHOWN]}" is no {key.replace("_", " ")}'
