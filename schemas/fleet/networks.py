"""Networks of different clusters that overlap, though somebody has to route to both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple, TypeAlias

from ..diagnostics import Diagnostic, Severity
from ..spec.sites import SITE_TYPES
from .member import Member, Network

_Range: TypeAlias = IPv4Network | IPv6Network
_Prefix: TypeAlias = tuple[int, int, int]
"""Bits of the address, length of the prefix, the prefix as a number."""


class _Made(NamedTuple):
    """A network and the cluster that makes it."""

    member: Member
    network: Network
    range: _Range


class _Ranges:
    """Networks seen so far; finds one that overlaps in a step per bit of the prefix.

    Two ranges overlap when one holds the other: so it is enough to know the ranges themselves,
    and for each range that could be asked for the first one inside it.
    """

    def __init__(self) -> None:
        self._exact: dict[_Prefix, _Made] = {}
        self._inside: dict[_Prefix, _Made] = {}

    def add(self, made: _Made) -> None:
        """Remember a network; of equal ones the first is kept."""
        prefixes = _prefixes(made.range)
        self._exact.setdefault(prefixes[0], made)
        for prefix in prefixes:
            self._inside.setdefault(prefix, made)

    def overlapping(self, wanted: _Range) -> _Made | None:
        """Return a network that overlaps, or None."""
        prefixes = _prefixes(wanted)
        inside = self._inside.get(prefixes[0])
        if inside is not None:
            return inside
        return next((self._exact[prefix] for prefix in prefixes if prefix in self._exact), None)


def overlapping_networks(members: Sequence[Member]) -> Iterator[Diagnostic]:
    """Yield a finding for every network that overlaps one of an earlier cluster.

    One finding a network: where it must be routed together with one, that is the one told.
    Networks of two bare-metal sites were there before the clusters and may be one and the same.
    """
    seen = _Seen()
    for member in members:
        made = [
            _Made(member, network, parsed)
            for network in member.networks()
            if (parsed := _parsed(network.cidr)) is not None
        ]
        for each in made:
            yield from seen.finding(each)
        for each in made:
            seen.add(each)


class _Seen:
    """The networks of earlier clusters, by who routes to them."""

    def __init__(self) -> None:
        self._ranges: dict[tuple[str, bool], _Ranges] = {}

    def add(self, made: _Made) -> None:
        """Remember a network."""
        for group in ("", *_groups(made)):
            key = (group, _is_bare_metal(made))
            self._ranges.setdefault(key, _Ranges()).add(made)

    def finding(self, made: _Made) -> Iterator[Diagnostic]:
        """Yield what is said about a network, if it overlaps one that was remembered."""
        kinds = (False,) if _is_bare_metal(made) else (False, True)
        for group in (*_groups(made), ""):
            for kind in kinds:
                ranges = self._ranges.get((group, kind))
                other = ranges.overlapping(made.range) if ranges is not None else None
                if other is not None:
                    yield _finding(made, other, group)
                    return


def _is_bare_metal(made: _Made) -> bool:
    kind = SITE_TYPES.get(made.network.provider)
    return kind is not None and not kind.makes_machines


def _groups(made: _Made) -> tuple[str, ...]:
    """Return who routes to this network: this machine, or bare-metal sites of its cluster."""
    if made.network.provider == "local":
        return ("this machine",)
    return tuple(sorted(made.network.rooms))


def _finding(made: _Made, other: _Made, group: str) -> Diagnostic:
    cluster = "another cluster" if other.member.name is None else f'cluster "{other.member.name}"'
    why = {"": "", "this machine": "; both are on this machine"}.get(
        group, f"; both are linked to one bare-metal site ({group})"
    )
    return Diagnostic(
        code="GC854",
        severity=Severity.ERROR if group else Severity.WARNING,
        summary=f"network {made.network.cidr} overlaps {other.network.cidr} of {cluster}: "
        f"{other.member.place(other.network.path)}{why}",
        path=made.network.path,
        file=made.member.file,
        span=made.member.span(made.network.path),
        hint="give each cluster a range of its own: "
        "networks that overlap can't be routed to each other",
    )


def _parsed(cidr: str) -> _Range | None:
    try:
        return ip_network(cidr, strict=False)
    except ValueError:
        return None


def _prefixes(wanted: _Range) -> list[_Prefix]:
    """Return the range itself and every range that holds it, the narrowest first."""
    bits, number = wanted.max_prefixlen, int(wanted.network_address)
    return [(bits, length, number >> (bits - length)) for length in range(wanted.prefixlen, -1, -1)]
