"""YAML texts as people write them, drawn at random: blocks and brackets, comments, line ends."""

from __future__ import annotations

import random
from typing import Any

WORDS = ["train", "spill", "a b", "yes", "7d", "400 Gb/s", "gpu[001-004]", "it's", "x: y", "#1"]
KEYS = ["site", "machine", "count", "max_time", "a-b"]
_COMMENTS = ["", "", "", "  # why", " # x: {y"]


def data(chance: random.Random, depth: int = 3) -> dict[str, Any]:
    """Return a mapping of random shape."""
    keys = chance.sample(KEYS, chance.randint(1, 4))
    return {key: _value(chance, depth - 1) for key in keys}


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.choice(["word", "word", "number", "mapping", "list"])
    if depth <= 0 or kind == "word":
        return chance.choice(WORDS)
    if kind == "number":
        return chance.choice([4, 2.5, True, None])
    if kind == "mapping":
        return data(chance, depth) if chance.random() < 0.9 else {}
    return [_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]


def written(value: dict[str, Any], chance: random.Random) -> str:
    """Return a text that means `value`."""
    lines = [f"# a spec{chance.choice(['', ' of ours'])}", *_block(value, chance, 0)]
    text = chance.choice(["\n", "\n", "\r\n"]).join(lines)
    return text + ("" if chance.random() < 0.3 else text[-1:] * 0 + _end(text))


def _end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _block(value: Any, chance: random.Random, indent: int) -> list[str]:
    """Return the lines of a mapping or list, comments and empty lines between them."""
    lines: list[str] = []
    is_list = isinstance(value, list)
    items = [("-", item) for item in value] if is_list else [(f"{k}:", v) for k, v in value.items()]
    pad = " " * indent
    for lead, item in items:
        if chance.random() < 0.15:
            lines.append(chance.choice(["", f"{pad}# about the next", "# left"]))
        comment = chance.choice(_COMMENTS)
        if not item or not isinstance(item, dict | list) or chance.random() < 0.4:
            lines.append(f"{pad}{lead} {_flow(item, chance, indent + 2)}{comment}".rstrip())
            continue
        inner = _block(item, chance, indent + 2)
        if is_list and inner[0].startswith(f"{pad}  ") and not inner[0].lstrip().startswith("#"):
            lines += [f"{pad}- {inner[0].lstrip()}", *inner[1:]]
        elif is_list:
            lines += [f"{pad}-{comment}", *inner]
        elif isinstance(item, list) and chance.random() < 0.3:
            lines += [f"{pad}{lead}{comment}", *_block(item, chance, indent)]
        else:
            lines += [f"{pad}{lead}{comment}", *inner]
    return lines


def _flow(value: Any, chance: random.Random, indent: int) -> str:
    if value is None:
        return chance.choice(["", "null", "~"]) if indent < 4 else "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return _brackets(value, chance, indent)
    if not isinstance(value, str):
        return str(value)
    plain = not any(mark in value for mark in ("[", ": ", "#"))
    quoted = "'" + value.replace("'", "''") + "'"
    return chance.choice([value if plain else quoted, quoted, f'"{value}"'])


def _brackets(value: Any, chance: random.Random, indent: int) -> str:
    lead, tail = "{}" if isinstance(value, dict) else "[]"
    pairs = value.items() if isinstance(value, dict) else [(None, item) for item in value]
    parts = [
        ("" if key is None else f"{key}: ") + _flow(item, chance, indent + 2) for key, item in pairs
    ]
    style = chance.choice(["tight", "loose", "lines", "comma"]) if parts else "tight"
    if style == "lines":
        # One entry a line; the caller's text chooses the line ends later.
        pad = "\n" + " " * (indent + 2)
        body = ",".join(f"{pad}{part}" for part in parts)
        return f"{lead}{body}{chance.choice(['', ', # last'])}\n{' ' * indent}{tail}"
    inner = ", ".join(parts) + ("," if style == "comma" else "")
    return f"{lead} {inner} {tail}" if style == "loose" else f"{lead}{inner}{tail}"
