"""The calls that the agent has made, each beside its rounds, and what it says of all that happens.

`ProviderWork` makes the real calls.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from .work import Made


class Work(Protocol):
    """The calls that the agent has made; see `ProviderWork`."""

    def grow(self, site: str, pool: str, nodes: Collection[str], rung: str, token: str) -> Made:
        """Make nodes in one call."""
        ...

    def shrink(self, site: str, nodes: Collection[str]) -> bool:
        """Remove nodes; say whether nothing of them is left."""
        ...

    def addresses(self, site: str, nodes: Collection[str]) -> dict[str, str]:
        """Return the addresses of nodes that have answered once."""
        ...

    def join(self, site: str, nodes: Collection[str]) -> dict[str, str]:
        """Converge nodes; return node -> why it is not done."""
        ...

    def price(self, site: str, pool: str, rung: str) -> float | None:
        """Return what a node costs now, bought so, in USD per hour; None: nobody says."""
        ...


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One line of what the agent says."""

    what: str
    """A step of nodes (asked, made, refused, joined, leaving, gone); moved or not-moved; gave-up,
    may-come-again, let-go; not-joined-yet, unsure, failed, not-done, silent; note, spec-changed."""
    nodes: str = ""
    job: str = ""
    pool: str = ""
    rung: str = ""
    reason: str = ""
