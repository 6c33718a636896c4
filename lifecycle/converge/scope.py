"""A part of a convergence: some nodes, or some steps of theirs, done whatever their stamps say."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from .pending import Pending
from .stamps import DOUBTED


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a convergence is limited to."""

    hosts: frozenset[str] = frozenset()
    """All that is pending on these."""
    steps: Mapping[str, frozenset[str]] = {}
    """Host -> steps that are done there."""
    again: Mapping[str, frozenset[str]] = {}
    """Host -> steps whose stamp is not believed."""

    def of(self, pending: Pending) -> Pending:
        """Return the part of the pending steps that is in it."""
        return pending.where(lambda host, step: host in self.hosts or step in self._named(host))

    def _named(self, host: str) -> Collection[str]:
        return self.steps.get(host, ())


def worn_out(stamps: Mapping[str, Mapping[str, str]], scope: Scope) -> dict[str, dict[str, str]]:
    """Return the stamps without what the scope does not believe.

    A stamp that isn't there stays so: that a node has joined is told by its stamp, worn or not.
    """
    return {
        host: {
            step: DOUBTED if step in scope.again.get(host, ()) else digest
            for step, digest in carried.items()
        }
        for host, carried in stamps.items()
    }
