"""The spec that was last applied, or whose application was begun: an object each time.

`applied/000007.json` holds the spec's text, the user's catalog files and the bundle's manifest as
they were, so that a killed write leaves no mixture. It is never changed; the newest one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..outcome import Exit, failure
from .bucket import AlreadyExists

if TYPE_CHECKING:
    from .store import StateStore

PREFIX = "applied"


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster was brought to, or was being brought to."""

    spec: str
    """Text of the spec."""
    catalogs: dict[str, bytes] = {}
    """Name -> content of the user's catalog files, in order of their names."""
    bundle: bytes | None = None
    """Manifest of the bundle that the nodes live on."""
    kubernetes: bytes | None = None
    """Manifest of the bundle that they take Kubernetes from."""


def newest_applied(store: StateStore) -> Applied | None:
    """Return what was applied last; None when nothing ever was.

    Raises:
        LifecycleError: it is there and can't be read (GC900).
    """
    number = applied_number(store)
    return store.read(_key(number), Applied) if number else None


def applied_number(store: StateStore) -> int:
    """Return the number of the newest one: it grows with each spec that is applied; 0: none is."""
    names = (key.rpartition("/")[2].removesuffix(".json") for key in store.list(PREFIX))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def keep_applied(store: StateStore, applied: Applied) -> None:
    """Store what is being applied, unless the newest one says the same.

    Raises:
        LifecycleError: another run stored one meanwhile: it has the lock now (exit code LOCKED).
    """
    number = applied_number(store)
    data = msgspec.json.encode(applied)
    if number and store.get(_key(number)) == data:
        return
    try:
        store.put_new(_key(number + 1), data)
    except AlreadyExists:
        if store.get(_key(number + 1)) != data:  # else the store repeated our own request
            raise failure(
                "GC904",
                "another run applied a spec meanwhile: it has the lock now",
                hint="see gcluster status, then run the command again",
                exit_code=Exit.LOCKED,
            ) from None


def _key(number: int) -> str:
    return f"{PREFIX}/{number:06d}.json"
