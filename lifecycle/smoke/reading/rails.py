"""The lines in which the first rank of each node counts what its ports carried (rails.sh)."""

from __future__ import annotations

import re

from .log import Rail

MOST_RAILS = 400_000
"""Ports that are kept: 10,000 nodes have fewer."""

_RAIL = re.compile(
    r"# gcluster rail: (\S+) (before|after) (\S+) (\S+) ([\d.]+|-) (\d+|-) (\d+|-)\s*$"
)


class RailReader:
    """Takes the lines as they come; what a port carried is the difference of two of them."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._before: dict[tuple[str, str], tuple[str, str]] = {}
        self._rails: dict[tuple[str, str], Rail] = {}

    def feed(self, line: str) -> bool:
        """Take a line; return whether it was one of these."""
        match = _RAIL.match(line)
        if match is None:
            return False
        host, when, device, layer, gbps, sent, received = match.groups()
        if len(self._before) >= MOST_RAILS:
            return True
        if when == "before":
            self._before[host, device] = sent, received
            return True
        was_sent, was_received = self._before.get((host, device), ("-", "-"))
        self._rails[host, device] = Rail(
            host=host,
            device=device,
            layer=layer,
            gbps=None if gbps == "-" else float(gbps),
            sent=_difference(sent, was_sent),
            received=_difference(received, was_received),
        )
        return True

    def result(self) -> tuple[Rail, ...]:
        """Return what each port carried, of those that were counted before and after."""
        return tuple(self._rails.values())


def _difference(now: str, before: str) -> int | None:
    if "-" in {now, before} or int(now) < int(before):
        return None
    return int(now) - int(before)
