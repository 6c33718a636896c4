"""Plain data that knows which of its leaves somebody has read: the others are told at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]


class Source:
    """A mapping read from a file; `take` reads a value and marks it, `rest` gives the unread."""

    def __init__(self, data: Any, path: Path = (), read: set[Path] | None = None) -> None:
        """Hold data; parts made by `part` and `each` share what was read."""
        self._data = data if isinstance(data, dict) else {}
        self._path = path
        self._read = set() if read is None else read

    def take(self, *keys: str) -> Any:
        """Return a value and mark it, with all below it, as read; None where it is not there."""
        value = self._find(keys)
        if value is not None:
            self._read.add((*self._path, *keys))
        return value

    def text(self, *keys: str) -> str:
        """Return a value as text; "" where there is none, or no plain value."""
        value = self.take(*keys)
        return "" if value is None or isinstance(value, dict | list) else str(value)

    def number(self, *keys: str) -> int | None:
        """Return a whole number; None where there is none, unread where it is something else."""
        value = self._find(keys)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        try:
            found = int(value)
        except ValueError:
            return None
        self.take(*keys)
        return found

    def part(self, *keys: str) -> Source:
        """Return a mapping below this one; an empty one where there is none."""
        return Source(self._find(keys), (*self._path, *keys), self._read)

    def each(self, *keys: str) -> Iterator[Source]:
        """Yield the mappings of a list below this one."""
        found = self._find(keys)
        for index, item in enumerate(found if isinstance(found, list) else ()):
            if isinstance(item, dict):
                yield Source(item, (*self._path, *keys, index), self._read)

    def names(self) -> list[str]:
        """Return the keys of this mapping."""
        return [str(key) for key in self._data]

    def rest(self) -> Iterator[tuple[Path, Any]]:
        """Yield the path and value of each leaf below this mapping that nobody has read."""
        yield from self._unread(self._data, self._path)

    def _find(self, keys: tuple[str, ...]) -> Any:
        found: Any = self._data
        for key in keys:
            if not isinstance(found, dict):
                return None
            found = found.get(key)
        return found

    def _unread(self, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
        if path in self._read:
            return
        if isinstance(value, dict) and value:
            for key, item in value.items():
                yield from self._unread(item, (*path, str(key)))
        elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
            for index, item in enumerate(value):
                yield from self._unread(item, (*path, index))
        elif value not in (None, {}, []):
            yield path, value


def words(path: Path) -> str:
    """Write a path: Scheduling.SlurmQueues[0].Name."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")
