"""Did you mean: the closest of the words that would have been right."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def closest(word: str, options: Iterable[str]) -> str | None:
    """Return the option that `word` most likely stands for, or None when nothing is close."""
    return _closest(word[:64], tuple(sorted(options)))


@lru_cache(maxsize=256)
def _closest(word: str, options: tuple[str, ...]) -> str | None:
    plain = _plain(word)
    for option in options:
        if _plain(option) == plain:
            return option

    from difflib import get_close_matches  # noqa: PLC0415  # only when something is wrong

    matches = get_close_matches(word, options, n=1, cutoff=0.6)
    return matches[0] if matches else None


def _plain(word: str) -> str:
    """Drop what people mix up: case, hyphens and underscores (maxTime, max-time)."""
    return word.replace("-", "").replace("_", "").casefold()


def listing(options: Iterable[str], *, limit: int = 12) -> str:
    """Return the options for a message, cut after `limit`."""
    words = sorted(options)
    shown = ", ".join(words[:limit])
    return f"{shown} ... ({len(words):,} in all)" if len(words) > limit else shown
