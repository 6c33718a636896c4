"""A mapping that is read from a file: which of its settings were carried, and which weren't."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

Path: TypeAlias = tuple[str | int, ...]
Kind: TypeAlias = Literal["unfinished", "guess", "lost", "replaced"]
"""Why a setting is listed. unfinished: its value isn't known here, and the spec waits for it;
guess: the spec says something that the source doesn't; lost: what it does is not there afterwards;
replaced: gcluster does it in its own way."""
ORDER: tuple[Kind, ...] = ("unfinished", "guess", "lost", "replaced")
"""What blocks first."""

_UNRESOLVED = re.compile(
    r"\$\{[^}]*\}|\$\([^)]*\)|\(\(.*?\)\)|\{\{.*?\}\}|^\$[A-Z]\w*$|^<[^<>]+>$|\bPLACEHOLDER_\w+",
    re.DOTALL,
)
"""Variables of shells, Terraform, the Cluster Toolkit and Jinja, and what people write to be
replaced by hand."""
_SHELL = re.compile(r"\$\{(\w+)\}|^\$([A-Z]\w*)$|\b(PLACEHOLDER_\w+)")


def unresolved(value: Any) -> bool:
    """Say whether a text still contains a variable without a value."""
    return isinstance(value, str) and _UNRESOLVED.search(value) is not None


def filled(value: Any, variables: Mapping[str, str]) -> Any:
    """Put values of variables in as envsubst does: ${NAME}; PLACEHOLDER_NAME is one too."""
    if isinstance(value, dict):
        return {key: filled(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, variables) for item in value]
    if not isinstance(value, str):
        return value
    return _SHELL.sub(
        lambda found: variables.get(found[1] or found[2] or found[3], found[0]), value
    )


class _Left(msgspec.Struct, frozen=True):
    """Why a setting was left out."""

    why: str
    kind: Kind


class _Marks(msgspec.Struct):
    """What has become of the settings so far, by path."""

    carried: set[Path] = msgspec.field(default_factory=set)
    left: dict[Path, _Left] = msgspec.field(default_factory=dict)
    one: set[Path] = msgspec.field(default_factory=set)
    """Carried parts that count as one setting."""


class Setting(msgspec.Struct, frozen=True):
    """A leaf of the source that the spec doesn't say."""

    path: Path
    value: Any
    why: str
    """"" where it was not read yet."""
    kind: Kind


class Source:
    """A mapping of a file; `take` reads a value and marks it, `not_carried` gives the others."""

    def __init__(self, data: Any, path: Path = (), marks: _Marks | None = None) -> None:
        """Hold data; parts made by `part` and `each` share what was read."""
        self._data = data if isinstance(data, dict) else {}
        self._path = path
        self._marks = _Marks() if marks is None else marks

    def take(self, *keys: str) -> Any:
        """Return a value and mark it, with all below it, as carried; None where it is not there.

        A text with an unresolved variable is none: it is marked as unfinished.
        """
        value = self._find(keys)
        if unresolved(value) or (isinstance(value, list) and any(map(unresolved, value))):
            self.leave("a variable in it has no value: --var NAME=VALUE", *keys, kind="unfinished")
            return None
        if value is not None:
            self._marks.carried.add((*self._path, *keys))
            self._marks.left.pop((*self._path, *keys), None)
        return value

    def text(self, *keys: str) -> str:
        """Return a value as text; "" where there is none, or no plain value."""
        value = self._find(keys)
        if value is None or isinstance(value, dict | list):
            return ""
        value = self.take(*keys)
        return "" if value is None else str(value)

    def texts(self, *keys: str) -> list[str]:
        """Return the plain values of a list as texts; of one plain value, that one."""
        found = self._find(keys)
        if found is None or isinstance(found, dict):
            return []
        if not isinstance(found, list):
            one = self.text(*keys)
            return [one] if one else []
        if any(isinstance(item, dict | list) for item in found):
            return []
        return [str(item) for item in self.take(*keys) or () if item is not None]

    def pairs(self, *keys: str) -> dict[str, str]:
        """Return a mapping of labels or tags as texts; {} where there is none."""
        found = self.take(*keys)
        if not isinstance(found, dict):
            return {}
        return {str(key): str(value) for key, value in found.items()}

    def number(self, *keys: str) -> int | None:
        """Return a whole number; None where there is none, unread where it is something else."""
        value = self._find(keys)
        if unresolved(value):
            self.take(*keys)
            return None
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        try:
            found = int(value)
        except ValueError:
            return None
        self.take(*keys)
        return found

    def agrees(self, *keys: str, value: Any) -> bool:
        """Say whether a value is what gcluster does anyway, and mark it as carried then."""
        found = self._find(keys)
        same = found == value and found is not None
        if same:
            self._marks.carried.add((*self._path, *keys))
        return same

    def raw(self, *keys: str) -> str:
        """Return a text as it is, variables and all, without marking it; "" where none is."""
        value = self._find(keys)
        return value if isinstance(value, str) else ""

    def peek(self, *keys: str) -> Any:
        """Return a value without marking it; None where it is not there."""
        return self._find(keys)

    def accept(self, *keys: str) -> None:
        """Mark a value as carried, whatever is in it."""
        self._marks.carried.add((*self._path, *keys))
        self._marks.left.pop((*self._path, *keys), None)

    def accept_as_one(self) -> None:
        """Mark this mapping as carried; all that is in it is one setting."""
        self.accept()
        self._marks.one.add(self._path)

    def has(self, *keys: str) -> bool:
        """Say whether there is a value, without reading it."""
        return self._find(keys) is not None

    def leave(self, why: str, *keys: str | int, kind: Kind = "lost") -> None:
        """Mark a value, with all below it, as not carried over, and say why."""
        if self._find(keys) is None:
            return
        path = (*self._path, *keys)
        self._marks.carried.discard(path)
        self._marks.left[path] = _Left(why, kind)

    def part(self, *keys: str) -> Source:
        """Return a mapping below this one; an empty one where there is none."""
        return Source(self._find(keys), (*self._path, *keys), self._marks)

    def each(self, *keys: str) -> Iterator[Source]:
        """Yield the mappings of a list below this one."""
        found = self._find(keys)
        for index, item in enumerate(found if isinstance(found, list) else ()):
            if isinstance(item, dict):
                yield Source(item, (*self._path, *keys, index), self._marks)

    def names(self) -> list[str]:
        """Return the keys of this mapping."""
        return [str(key) for key in self._data]

    def total(self) -> int:
        """Return how many settings the mapping has; a part that was left as a whole is one."""
        return sum(1 for _ in self._settings())

    def not_carried(self) -> Iterator[Setting]:
        """Yield each setting below this mapping that is not carried, with why as far as said."""
        for path, value, mark in self._settings():
            if mark is None:
                yield Setting(path, value, "", "lost")
            elif mark != "carried":
                yield Setting(path, value, mark.why, mark.kind)

    def _settings(self) -> Iterator[tuple[Path, Any, _Left | Literal["carried"] | None]]:
        """Yield each setting and what was said of it."""
        whole: set[Path] = set()
        for path, value in _leaves(self._data, self._path):
            place, mark = self._mark(path)
            if mark is None or (mark == "carried" and place not in self._marks.one):
                yield path, value, mark
            elif place not in whole:
                whole.add(place)
                yield place, value if place == path else {}, mark

    def _mark(self, path: Path) -> tuple[Path, _Left | Literal["carried"] | None]:
        """Return what was said of the nearest part that a leaf is in, and which part that is."""
        for end in range(len(path), -1, -1):
            if path[:end] in self._marks.left:
                return path[:end], self._marks.left[path[:end]]
            if path[:end] in self._marks.carried:
                return path[:end], "carried"
        return path, None

    def _find(self, keys: tuple[str | int, ...]) -> Any:
        found: Any = self._data
        for key in keys:
            if isinstance(key, int) and isinstance(found, list):
                found = found[key]
            elif isinstance(found, dict):
                found = found.get(key)
            else:
                return None
        return found


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield each setting: a plain value, or a list of such."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key if isinstance(key, int) else str(key)))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    elif value not in (None, {}, []):
        yield path, value


def words(path: Path) -> str:
    """Write a path: Scheduling.SlurmQueues[0].Name."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


_PRIVATE = re.compile(
    r"secret|passw|token|args|script|content|credential|user_?data|command", re.IGNORECASE
)
_LONGEST = 60


def shown(path: Path, value: Any) -> str:
    """Write a setting for people: without values that may be secret, or long."""
    if value == {}:  # a part as a whole
        return words(path)
    hidden = any(isinstance(step, str) and _PRIVATE.search(step) for step in path[-2:])
    text = "..." if hidden or isinstance(value, dict) else str(value)
    if isinstance(value, list) and not hidden:
        text = ", ".join(map(str, value))
    return f"{words(path)}: {text if len(text) < _LONGEST and text.isprintable() else '...'}"
