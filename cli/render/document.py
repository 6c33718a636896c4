"""Values as JSON: the same values that the text is made from."""

from __future__ import annotations

from typing import Any

import msgspec


def document(value: Any) -> str:
    """Return one JSON document, indented; quantities appear as they are written in a spec."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
