"""A scheduler that may be away for a moment: the same change may have started it anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from .roll import POLL_S, Clock
from .service import NodeService, NodeUse, ServiceSilent

SILENCE_S = 90.0
"""How long a scheduler may give no answer before the nodes are left as they are."""
_T = TypeVar("_T")


class Patient:
    """Asks again for a while; every call of a scheduler may be repeated."""

    def __init__(self, service: NodeService, clock: Clock) -> None:
        """Hold the scheduler; nothing is asked yet."""
        self._service, self._clock = service, clock

    def look(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node."""
        return self._asked(lambda: self._service.look(nodes))

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Let no further job start on the nodes."""
        self._asked(lambda: self._service.drain(nodes, reason))

    def give_back(self, nodes: Collection[str]) -> None:
        """Let jobs start on the nodes again."""
        self._asked(lambda: self._service.give_back(nodes))

    def requeue(self, jobs: Collection[str]) -> None:
        """Put jobs back in line."""
        self._asked(lambda: self._service.requeue(jobs))

    def _asked(self, ask: Callable[[], _T]) -> _T:
        until = self._clock.now() + SILENCE_S
        while True:
            try:
                return ask()
            except ServiceSilent:
                if self._clock.now() >= until:
                    raise
                self._clock.sleep(POLL_S)
