"""In which order a fleet comes up, and networks of its members that overlap."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import field

from ..diagnostics import Diagnostic, PathTuple, Severity, closest, in_file_order
from ..spec.model import Name, SpecModel
from ..spec.sites import SITE_TYPES
from ..structure.compose import compose
from ..structure.document import Document
from ..structure.fit import fit
from ..structure.source import decode
from .member import Member, Network

FILE = "fleet.yaml"
"""Its name, in the folder of the specs."""


class Fleet(SpecModel, frozen=True, kw_only=True):
    """What fleet.yaml says."""

    api_version: Literal["gcluster/fleet/v1"] = field(name="apiVersion")
    """Version of this file's form."""
    order: list[Name | list[Name]] = field(default_factory=list)
    """Clusters, step by step; those of a list are one step. Clusters that are not named come last,
    in one step."""
    remove: list[Name] = field(default_factory=list)
    """Clusters that have no spec here any more and are to be taken down."""

    def steps(self, clusters: Collection[str]) -> tuple[tuple[str, ...], ...]:
        """Return these clusters in steps, by name within a step; empty steps are left out."""
        named = [(entry,) if isinstance(entry, str) else tuple(entry) for entry in self.order]
        names = {name for step in named for name in step}
        rest = tuple(name for name in clusters if name not in names)
        steps = (tuple(sorted(set(step) & set(clusters))) for step in (*named, rest))
        return tuple(step for step in steps if step)


class LoadedFleet(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet file, read."""

    fleet: Fleet | None
    """None: it has errors."""
    diagnostics: tuple[Diagnostic, ...]
    text: str = ""


NONE = Fleet(api_version="gcluster/fleet/v1")
"""Where there is no file: one step, nothing is removed."""


def load_fleet(content: bytes, *, file: str, clusters: Collection[str]) -> LoadedFleet:
    """Read a fleet file.

    Args:
        content: its bytes.
        file: how diagnostics call it.
        clusters: names of the clusters whose specs are next to it.
    """
    text = decode(content, file=file)
    if isinstance(text, Diagnostic):
        return LoadedFleet(fleet=None, diagnostics=(text,))
    composed = compose(text, file=file)
    document = composed.document
    if document is None or not isinstance(document.data, dict):
        found = composed.diagnostics or [_finding("it holds no mapping", file, None, ())]
        return LoadedFleet(fleet=None, diagnostics=tuple(found), text=text)
    structured = fit(Fleet, document, file=file, spoilt=frozenset(composed.broken))
    found = [*composed.diagnostics, *structured.diagnostics]
    if isinstance(structured.value, Fleet):
        found += _wrong(structured.value, document, file, clusters)
    usable = structured.value if not any(each.is_error for each in found) else None
    return LoadedFleet(fleet=usable, diagnostics=tuple(in_file_order(found)), text=text)


def _wrong(
    fleet: Fleet, document: Document, file: str, clusters: Collection[str]
) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, entry in enumerate(fleet.order):
        for at, name in enumerate([entry] if isinstance(entry, str) else entry):
            path: PathTuple = ("order", index) if isinstance(entry, str) else ("order", index, at)
            if name in seen:
                yield _finding(
                    f'cluster "{name}" is listed twice in the order', file, document, path
                )
            elif name not in clusters:
                near = closest(name, clusters)
                hint = f'did you mean "{near}"?' if near else "remove the name"
                yield _finding(f'no spec here is of a cluster "{name}"', file, document, path, hint)
            seen.add(name)
    for index, name in enumerate(fleet.remove):
        if name in clusters:
            yield _finding(
                f'cluster "{name}" is to be removed and has a spec here',
                file,
                document,
                ("remove", index),
                "remove the spec, or the name from this list",
            )


def _finding(
    summary: str, file: str, document: Document | None, path: PathTuple, hint: str = ""
) -> Diagnostic:
    return Diagnostic(
        code="GC1133",
        severity=Severity.ERROR,
        summary=summary,
        path=path,
        file=file,
        span=None if document is None else document.locate(path),
        hint=hint,
    )


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
    and for each range that could be queried the first one inside it.
    """

    def __init__(self) -> None:
        self._exact: dict[_Prefix, _Made] = {}
        self._inside: dict[_Prefix, _Made] = {}

    def add(self, made: _Made) -> None:
        """Record a network; of equal ones the first is kept."""
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

    One finding a network: where it must be routed together with one, that is the one reported.
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
        """Record a network."""
        for group in ("", *_groups(made)):
            key = (group, _is_bare_metal(made))
            self._ranges.setdefault(key, _Ranges()).add(made)

    def finding(self, made: _Made) -> Iterator[Diagnostic]:
        """Yield what is said about a network, if it overlaps one that was recorded."""
        kinds = (False,) if _is_bare_metal(made) else (False, True)
        for group in (*_groups(made), ""):
            for kind in kinds:
                ranges = self._ranges.get((group, kind))
                other = ranges.overlapping(made.range) if ranges is not None else None
                if other is not None:
                    yield _network_finding(made, other, group)
                    return


def _is_bare_metal(made: _Made) -> bool:
    kind = SITE_TYPES.get(made.network.provider)
    return kind is not None and not kind.makes_machines


def _groups(made: _Made) -> tuple[str, ...]:
    """Return who routes to this network: this machine, or bare-metal sites of its cluster."""
    if made.network.provider == "local":
        return ("this machine",)
    return tuple(sorted(made.network.rooms))


def _network_finding(made: _Made, other: _Made, group: str) -> Diagnostic:
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
