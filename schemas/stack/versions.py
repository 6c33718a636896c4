"""Versions as they are written, whole or by their beginning: compared as far as both say."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

_Parts: TypeAlias = tuple[tuple[int, int, str], ...]


@lru_cache(maxsize=1024)
def parts(version: str) -> _Parts:
    """Return a version's parts in an order that compares: 24.11.5 before 24.11.10."""
    return tuple(
        (1, int(word), "") if word.isdigit() else (0, 0, word)
        for word in re.split(r"[.+~:-]", version)
    )


def fits(asked: str, version: str) -> bool:
    """Say whether two versions can be one: one is the beginning of the other, part by part."""
    mine, other = parts(asked), parts(version)
    shorter = min(len(mine), len(other))
    return mine[:shorter] == other[:shorter]


def older(version: str, least: str) -> bool:
    """Say whether a version is certainly older: 570 may be 570.133.20, 550 may not."""
    mine, other = parts(version), parts(least)
    shorter = min(len(mine), len(other))
    return mine[:shorter] < other[:shorter]


def longer(one: str, other: str) -> str:
    """Return the one of two fitting versions that says more."""
    return one if len(parts(one)) >= len(parts(other)) else other


def release(version: str, size: int = 2) -> str | None:
    """Return the release a version is of (24.11 of 24.11.5); None when it doesn't say."""
    words = re.split(r"[.+~:-]", version)
    return ".".join(words[:size]) if len(words) >= size else None
