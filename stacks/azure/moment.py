"""What a program can't know from the spec: the key people log in with, the month, what runs now."""

from __future__ import annotations

import msgspec


class LivePool(msgspec.Struct, frozen=True, kw_only=True):
    """What a scale set has now and a stack update must not undo.

    A stack update writes the whole scale set, so what elastic growth has changed is handed to the
    program: its machines, and the tags that say which machine has which name.
    """

    capacity: int
    tags: dict[str, str] = {}


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """The world as `up` finds it. The defaults stand for it in recordings."""

    public_key: str = "ssh-ed25519 MADE-BY-UP gcluster"
    """Of the cluster's login key."""
    month: str = "2026-01-01"
    """First day of the month in which a budget begins; read when it is made, then never again."""
    live: dict[str, LivePool] = {}
    """Scale set, by its name in the plan -> what it has now."""
    taken: dict[str, str] = {}
    """Host -> key of the rung that it is bought on; absent: the first, "": it is not made."""
