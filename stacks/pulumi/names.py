"""Names of resources: the same for the same spec, short enough for each cloud."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import msgspec

from ...schemas.decoding import decode_yaml

SUFFIX = 8
"""Characters that Pulumi adds to make a physical name from a logical one ("-" and 7 hex digits)."""
_HASH = 6


class Limit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a cloud takes as a name."""

    longest: int
    compact: bool = False
    """Letters and digits only."""


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Makes `<cluster>-<site>-<what>[-n]`; what is too long ends in a hash of the whole instead.

    A name depends on its own parts alone, so it stays when another pool is added.
    """

    cluster: str
    site: str
    cloud: str
    """Its folder of stacks: names.yaml there says what it takes; without one there is no limit."""

    def __call__(self, what: str, number: int | None = None, *, kind: str = "default") -> str:
        """Return the name of a thing; `kind` is the cloud's kind with limits of its own."""
        parts = [self.cluster, self.site, what, *([] if number is None else [str(number)])]
        limits = _limits(self.cloud)
        name = "-".join(parts)
        if limits is None:
            return name
        limit = limits.get(kind, limits["default"])
        return shortened(name, limit)


def shortened(name: str, limit: Limit) -> str:
    """Return a name that leaves room for Pulumi's suffix; a hash keeps short ones apart."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
    room = limit.longest - SUFFIX
    if limit.compact:
        kept = "".join(char for char in name if char.isalnum()).lower()
        return kept[: room - _HASH] + digest  # without hyphens a-bc and ab-c would be one name
    if len(name) <= room:
        return name
    return f"{name[: room - _HASH - 1].rstrip('-')}-{digest}"


@cache
def _limits(cloud: str) -> dict[str, Limit] | None:
    """Return what a cloud takes by kind of resource; None where nobody says."""
    file = Path(__file__).parents[1] / cloud / "names.yaml"
    return decode_yaml(file.read_bytes(), dict[str, Limit]) if file.exists() else None
