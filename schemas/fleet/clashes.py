"""What clashes between clusters: a name, a state, a bare-metal host or a network of two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import PurePath
from typing import NamedTuple

from ..derived.hostlist import fold
from ..diagnostics import Diagnostic, Severity, in_file_order
from ..load import Loaded
from .member import Hosts, Member
from .ordering import overlapping_networks

_LONGEST_RANGE = 48
"""Characters of a host range that is written out in a message."""


class _Claim(NamedTuple):
    """Who names a host: the spec and the item of it."""

    member: Member
    hosts: Hosts


class _Clash(NamedTuple):
    """The hosts of one pool that an earlier pool has, and whether they are surely the same."""

    mine: _Claim
    first: _Claim
    names: list[str]


def check_fleet(loaded: Sequence[Loaded]) -> list[Diagnostic]:
    """Return what clashes between the clusters of several specs, in file order.

    Each finding is in the later file (in the order given) and names the earlier one. About
    as much work as there are hosts and networks.
    """
    members = [Member(each) for each in loaded]
    again = same_clusters(members)
    clusters = [member for index, member in enumerate(members) if index not in again]
    found = [
        *names_given_twice(members),
        *states_given_twice(clusters),
        *hosts_claimed_twice(clusters),
        *overlapping_networks(clusters),
    ]
    return in_file_order(found)


def same_clusters(members: Sequence[Member]) -> dict[int, Member]:
    """Return which members, by index, describe a cluster that an earlier file describes.

    They have one name and one state: written, or next to specs of one folder.
    """
    first: dict[tuple[str, str], Member] = {}
    again: dict[int, Member] = {}
    for index, member in enumerate(members):
        if member.name is None:
            continue
        where = member.state or f"next to the spec in {PurePath(member.file).parent}"
        earlier = first.setdefault((member.name, where), member)
        if earlier is not member:
            again[index] = earlier
    return again


def names_given_twice(members: Sequence[Member]) -> Iterator[Diagnostic]:
    """Yield a finding for every cluster whose name an earlier one has."""
    first: dict[str, Member] = {}
    for member in members:
        if member.name is None:
            continue
        earlier = first.setdefault(member.name, member)
        if earlier is not member:
            yield Diagnostic(
                code="GC851",
                severity=Severity.ERROR,
                summary=f'another cluster is named "{member.name}": {earlier.place(("name",))}',
                path=("name",),
                file=member.file,
                span=member.span(("name",)),
                hint="give each cluster a name of its own, or keep one of the two files",
            )


def states_given_twice(members: Sequence[Member]) -> Iterator[Diagnostic]:
    """Yield a finding for every cluster that keeps its state where an earlier one does."""
    first: dict[str, Member] = {}
    for member in members:
        if member.state is None:
            continue
        earlier = first.setdefault(member.state, member)
        if earlier is not member:
            yield Diagnostic(
                code="GC852",
                severity=Severity.ERROR,
                summary=f"{_cluster(earlier)} keeps its state here too: "
                f"{earlier.place(('state',))}",
                path=("state",),
                file=member.file,
                span=member.span(("state",)),
                hint="give each cluster a place of its own, or leave state out: "
                "it is then kept next to the spec",
            )


def hosts_claimed_twice(members: Sequence[Member]) -> Iterator[Diagnostic]:
    """Yield a finding for every pool with hosts of an earlier cluster; linear in the hosts."""
    reached: dict[tuple[str, int], _Claim] = {}
    named: dict[tuple[str, int], _Claim] = {}
    for member in members:
        clashes: dict[tuple[object, ...], _Clash] = {}
        claims = [_Claim(member, hosts) for hosts in member.hosts()]
        for claim in claims:
            addresses = claim.hosts.addresses or claim.hosts.names
            for name, address in zip(claim.hosts.names, addresses, strict=True):
                by_name = (name.lower(), claim.hosts.port)
                by_address = (address.lower(), claim.hosts.port)
                before = reached.get(by_address) or reached.get(by_name)
                if before is None and claim.hosts.addresses is None:
                    before = named.get(by_name)
                if before is not None and before.member is not member:
                    key = _group(claim, before, address)
                    clashes.setdefault(key, _Clash(claim, before, [])).names.append(name)
                reached.setdefault(by_address, claim)
                named.setdefault(by_name, claim)
        yield from (_claimed(clash, certain=bool(key[-1])) for key, clash in clashes.items())


def _group(claim: _Claim, before: _Claim, address: str) -> tuple[object, ...]:
    """Return what one finding reports: a pool against a pool, sure and unsure apart."""
    certain = claim.hosts.bastion == before.hosts.bastion or _is_known_everywhere(address)
    return claim.hosts.pool, before.member.file, before.hosts.pool, certain


def _is_known_everywhere(address: str) -> bool:
    """Say whether a name or address means one machine wherever it is used."""
    try:
        return ip_address(address).is_global
    except ValueError:
        return "." in address


def _claimed(clash: _Clash, *, certain: bool) -> Diagnostic:
    mine, first = clash.mine, clash.first
    where = f'pool "{first.hosts.pool}", {first.member.place(first.hosts.path)}'
    names = _written(clash.names)
    if certain:
        verb = "belong" if len(clash.names) > 1 else "belongs"
        summary = f"{names} {verb} to {_cluster(first.member)} already: {where}"
        hint = "a host belongs to one cluster: take it out of one of the two"
    else:
        summary = f"{names} may belong to {_cluster(first.member)} already: {where}"
        hint = (
            "two bastions lead there, so these may be other machines; "
            "full host names (with their domain) would show"
        )
    return Diagnostic(
        code="GC853",
        severity=Severity.ERROR if certain else Severity.WARNING,
        summary=summary,
        path=mine.hosts.path,
        file=mine.member.file,
        span=mine.member.span(mine.hosts.path),
        hint=hint,
    )


def _written(names: list[str]) -> str:
    folded = fold(names)
    if len(folded) <= _LONGEST_RANGE:
        return folded
    return f"{len(names):,} hosts ({names[0]} to {names[-1]})"


def _cluster(member: Member) -> str:
    return "another cluster" if member.name is None else f'cluster "{member.name}"'
