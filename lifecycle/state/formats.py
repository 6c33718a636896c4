"""The versions of the state's layout, and the way from each to the next.

1 kept spec, catalog files and bundle as three objects that were replaced one by one.
2 keeps them as one, which is created and never changed (`applied.py`).
3 keeps the key of the secrets wrapped by the spec's provider (`keyring.py`), secrets by its number.

What an older version wrote is read as it is; it is brought to the newest form by the first run that
holds a lock, before that writes anything, and while it holds every other lock too. From then on
older versions of gcluster refuse the state, and what one that was at work writes all the same is
never read: it is put aside and told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from . import applied, format_3

if TYPE_CHECKING:
    from .store import StateStore

FORMAT_KEY = "format.json"
NEWEST = 3


class Format(msgspec.Struct, frozen=True):
    """Which version of the layout a state has."""

    version: int


_STEPS: dict[int, tuple[Callable[[StateStore], None], Callable[[StateStore], list[str]]]] = {
    1: (applied.leave_format_1, applied.forget_format_1),
    2: (format_3.add_format_3, format_3.forget_format_2),
}
"""Version -> what adds the next one's objects, and what removes its own when that is said: all but
those that somebody wrote later."""
ASIDE = "aside"
"""Prefix of what older versions wrote into a newer format: nothing reads it."""


def upgrade(store: StateStore) -> tuple[int, int] | None:
    """Bring a state to the newest format; return (from, to), or None where it is of that.

    Killed at any point it can be repeated: objects are added first, then the version is changed,
    and only then what no version reads any more is removed. For whoever holds a lock.

    Raises:
        LifecycleError: the store can't be read or written.
    """
    found = store.read(FORMAT_KEY, Format)
    if found is None or found.version == NEWEST:
        return None
    for version in range(found.version, NEWEST):
        add, _ = _STEPS[version]
        add(store)
        store.put(FORMAT_KEY, msgspec.json.encode(Format(version + 1)))
    store.refuse_newer()
    put_aside(store)
    return found.version, NEWEST


def put_aside(store: StateStore) -> tuple[str, ...]:
    """Remove what older formats kept; return what was written later, which is put aside instead.

    Safe to repeat and to kill: what an upgrade that was killed had left is gone after it. For
    whoever holds a lock, of a state of the newest format.
    """
    later = [
        key for version, (_, remove) in _STEPS.items() if version < NEWEST for key in remove(store)
    ]
    for key in later:
        data = store.get(key)
        if data is not None:
            store.put(f"{ASIDE}/{key}", data)
        store.delete(key)
    return tuple(later)
