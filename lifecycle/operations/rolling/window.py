"""Which nodes of a pool are out of service together, and when to stop (pure, without a clock)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ....schemas.derived.hostlist import host_order
from ....schemas.spec import Update
from ...scheduler.base import NodeUse


class Window:
    """The nodes of one pool that are to be changed: waiting, out of service, or through with it.

    At most `at_once` nodes are out because of us. The window slides: a node that waits for a long
    job does not hold up the others. After more than `max_failed` failures nothing new goes out.
    """

    def __init__(self, nodes: Iterable[str], policy: Update, *, pool_size: int) -> None:
        """Expect every node to be changed once."""
        self.waiting = sorted(nodes, key=host_order)
        self.out: dict[str, float] = {}
        """Node -> when it was taken out of service."""
        self.changed: list[str] = []
        self.failed: dict[str, str] = {}
        self.held: dict[str, str] = {}
        """Node -> why it was left as it is."""
        self._policy = policy
        self._at_once = policy.at_once(pool_size)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to wait for."""
        return not self.waiting and not self.out

    @property
    def has_stopped(self) -> bool:
        """Whether more nodes failed than may."""
        return len(self.failed) > self._policy.max_failed

    @property
    def requeues(self) -> bool:
        """Whether jobs on drained nodes are put back in line."""
        return self._policy.jobs == "requeue"

    def take(self, uses: Mapping[str, NodeUse], now: float) -> list[str]:
        """Choose who goes out of service now: those we had out already, then the least used."""
        if self.has_stopped:
            return []
        room = self._at_once - len(self.out)
        chosen = sorted(self.waiting, key=lambda node: _order(node, uses))[: max(0, room)]
        for node in chosen:
            self.waiting.remove(node)
            self.out[node] = now
        return chosen

    def ready(self, uses: Mapping[str, NodeUse]) -> list[str]:
        """Return the nodes that can be changed: out of service, and nothing runs there."""
        return [node for node in self.out if node in uses and uses[node].is_free]

    def end(self, nodes: Collection[str], failures: Mapping[str, str]) -> list[str]:
        """Take down how the change of some nodes ended; return those that may go back."""
        good = [node for node in nodes if node not in failures]
        for node in nodes:
            del self.out[node]
        self.changed += good
        self.failed |= {node: failures[node] for node in nodes if node in failures}
        return good

    def late(self, uses: Mapping[str, NodeUse], now: float) -> list[str]:
        """Give up nodes whose jobs outlast the patience; return those to be given back."""
        patience = self._policy.wait_s
        late = [node for node, since in self.out.items() if now - since >= patience]
        for node in late:
            jobs = uses[node].jobs if node in uses else ()
            what = f"job {', '.join(jobs)} still runs there" if jobs else "it did not become free"
            self._hold(node, f"{what} after {patience:.0f} s")
        return late

    def stop(self, reason: str) -> list[str]:
        """Leave all that is not through as it is; return those to be given back."""
        rest = [*self.out, *self.waiting]
        self.waiting.clear()
        for node in rest:
            self._hold(node, reason)
        return rest

    def _hold(self, node: str, reason: str) -> None:
        self.out.pop(node, None)
        self.held[node] = reason


def _order(node: str, uses: Mapping[str, NodeUse]) -> tuple[bool, int, bool]:
    """Order nodes: ours first, then the free, then by jobs; sorting keeps the names' order."""
    use = uses.get(node)
    if use is None:
        return (True, 0, True)
    return (not use.is_ours, len(use.jobs), not use.out)
