"""Values as JSON: the same values that the text is made from."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from ..console import emit, say


def document(value: Any) -> str:
    """Return one JSON document, indented; quantities appear as they are written in a spec."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:  # a file name that is no UTF-8 holds half characters
        encoded = msgspec.json.encode(_whole(msgspec.to_builtins(value, enc_hook=str)))
    return msgspec.json.format(encoded, indent=2).decode()


def answer(fmt: StrEnum, value: Any, text: Callable[[], str]) -> None:
    """Write a result: one JSON document for programs, otherwise its text for people."""
    if fmt == "json":
        emit(document(value))
    else:
        say(text())


def _whole(value: Any) -> Any:
    """Return plain data with half characters shown as escapes, which every reader takes."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(entry) for key, entry in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list | tuple) else value
