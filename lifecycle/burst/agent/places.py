"""Where rented nodes are, and whether the scheduler has it so.

A scheduler may take for a node's address the one that its words came from. Behind a router that
changes addresses, that is the router's: no job reaches the node then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from .scheduler import Seen

if TYPE_CHECKING:
    from .book import BurstFold, NodeRecord


class Places:
    """What the providers said, of each machine that was asked."""

    def __init__(self) -> None:
        """Know nothing yet: an agent that was started again asks anew."""
        self._said: dict[str, tuple[str, str]] = {}
        """Node -> (burst, address); calls that run beside the rounds add to it."""

    def learn(self, records: Collection[NodeRecord], addresses: Mapping[str, str]) -> None:
        """Keep what a provider said of nodes that it made."""
        for record in records:
            if record.node in addresses:
                self._said[record.node] = (record.burst, addresses[record.node])

    def unknown(self, fold: BurstFold) -> tuple[NodeRecord, ...]:
        """Return the nodes that take jobs and that no provider was asked about."""
        return tuple(
            record
            for record in fold.nodes.values()
            if record.step == "joined" and self._said.get(record.node, ("",))[0] != record.burst
        )

    def wrong(self, fold: BurstFold, seen: Seen) -> dict[str, str]:
        """Return node -> its address, of those that the scheduler would look for elsewhere."""
        found: dict[str, str] = {}
        for name, (burst, address) in list(self._said.items()):
            record, node = fold.nodes.get(name), seen.nodes.get(name)
            is_it = record is not None and record.burst == burst
            if is_it and node is not None and node.state == "here" and node.address:
                found |= {name: address} if node.address != address else {}
        return found
