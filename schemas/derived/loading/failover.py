"""Checks pools at each of the sites that they may be made at, and puts them at one of these.

Which one is chosen when the spec is loaded: the first, unless the state says another
(`lifecycle/planning/purchase`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from ...catalog import Catalog
from ...cost.pools import pool_cost
from ...diagnostics import Diagnostic, PathTuple, Severity
from ...spec import FailoverSite, Pool, Site
from ...spec.pool import MachineRequirement
from ...structure.document import Document, Structured
from ...structure.fix.patches import place_of
from ..failover import at_site, failover_sites
from .machine_requirements import with_machines

Check: TypeAlias = Callable[[Structured], "list[Diagnostic]"]


class WithSites(NamedTuple):
    """A spec whose pools are each at one of their sites."""

    structured: Structured
    diagnostics: tuple[Diagnostic, ...]
    edits: tuple[tuple[int, int, str], ...]
    """Start, end and what replaces it in the spec's text, for pools that are not where it says."""
    orders: Mapping[str, tuple[str, ...]]
    """Pool -> its sites, the one that comes first first."""


def with_sites(
    structured: Structured,
    document: Document,
    *,
    written: Structured,
    catalog: Callable[[], Catalog],
    check: Check | None,
    known: Iterable[Diagnostic],
    chosen: Mapping[str, str],
    spec: str,
) -> WithSites:
    """Check the pools at each of their sites, and put them at the one that was chosen.

    Args:
        structured: the typed parts, with the machine types that meet its requirements.
        document: the text.
        written: the same before requirements were answered.
        catalog: gives the machine types and their prices.
        check: finds what is wrong with a spec; None: it is taken as it is, each pool where the
            text has it.
        known: what is wrong with the spec as it is written.
        chosen: pool -> the site that it is at; default: the first.
        spec: name of the spec's file, for diagnostics.
    """
    before = {_key(each) for each in known}
    sites: Mapping[str, Site] = structured.parts.get("sites", {})
    pools: dict[str, Pool] = dict(structured.parts["pools"])
    found: list[Diagnostic] = []
    edits: list[tuple[int, int, str]] = []
    orders: dict[str, tuple[str, ...]] = {}
    for name, pool in structured.parts["pools"].items():
        there: dict[str, Pool] = {pool.site: pool}
        entries: dict[str, FailoverSite] = {}
        for index, other in enumerate(failover_sites(pool)):
            path: PathTuple = ("pools", name, "failover", index)
            moved = _moved(written, name, other)
            wrong: list[Diagnostic] = []
            if isinstance(moved.parts["pools"][name].machine, MachineRequirement):
                answered = with_machines(moved, document, catalog=catalog(), spec=spec)
                moved = answered.structured
                wrong = [each for each in answered.diagnostics if each.is_error]
            if check is not None and not wrong:
                errors = (each for each in check(moved) if each.is_error)
                wrong = [each for each in errors if _key(each) not in before]
            found += [_elsewhere(each, other.site, path, document, spec) for each in wrong]
            there[other.site] = moved.parts["pools"][name]
            entries[other.site] = _explicit(other, there[other.site])
        if not entries:
            continue
        priced = pool.failover_by == "price" and check is not None
        order = _by_price(there, sites, catalog()) if priced else tuple(there)
        orders[name] = order
        site = chosen.get(name, order[0])
        site = site if site in there else order[0]
        rest = [entries[each] for each in order if each in entries and each != site]
        pools[name] = msgspec.structs.replace(there[site], failover=rest)
        if site != pool.site:
            edits += _edits(name, entries[site], document, structured)
        if priced:
            costs = _costs(there, sites, catalog())
            at: PathTuple = ("pools", name, "failover_by")
            note = Diagnostic(
                code="GC031",
                severity=Severity.NOTE,
                summary=f'pool "{name}" is at {site}: a node costs {costs}',
                path=at,
                file=spec,
                span=document.locate(at),
            )
            found.append(note)
    value = structured.value
    replaced = msgspec.structs.replace(
        structured,
        parts={**structured.parts, "pools": pools},
        value=None if value is None else msgspec.structs.replace(value, pools=pools),
    )
    return WithSites(replaced, tuple(found), tuple(edits), orders)


def _moved(structured: Structured, name: str, other: FailoverSite) -> Structured:
    pools = {**structured.parts["pools"]}
    pools[name] = at_site(pools[name], other)
    return msgspec.structs.replace(
        structured, parts={**structured.parts, "pools": pools}, value=None
    )


def _explicit(other: FailoverSite, pool: Pool) -> FailoverSite:
    """Return an entry that says all that the pool is at its site."""
    return FailoverSite(
        site=other.site,
        machine=pool.machine,
        market=pool.market or ["on-demand"],
        zones=pool.zones,
        placement=pool.placement,
        image=pool.image,
        without=other.without,
    )


def usd_per_node_hour(pool: Pool, site: Site, catalog: Catalog) -> float | None:
    """Return what a node costs at a site on the first option; None: not known."""
    return pool_cost(pool, site, catalog).usd_per_node_hour


def _by_price(
    there: Mapping[str, Pool], sites: Mapping[str, Site], catalog: Catalog
) -> tuple[str, ...]:
    """Return the sites in the order of a node's price, those of an unknown one last."""

    def rank(name: str) -> tuple[bool, float]:
        site = sites.get(name)
        usd = None if site is None else usd_per_node_hour(there[name], site, catalog)
        return usd is None, usd or 0.0

    return tuple(sorted(there, key=rank))


def _key(found: Diagnostic) -> tuple[str, str, PathTuple]:
    return found.code, found.summary, found.path


def _elsewhere(
    found: Diagnostic, site: str, path: PathTuple, document: Document, spec: str
) -> Diagnostic:
    """Return an error of the spec with the pool at another site, at the entry that names it."""
    return msgspec.structs.replace(
        found,
        summary=f'at site "{site}", {found.summary}',
        path=path,
        file=spec,
        span=document.locate(path),
        patch=None,
    )


def _edits(
    name: str, entry: FailoverSite, document: Document, structured: Structured
) -> Iterator[tuple[int, int, str]]:
    """Yield the edits by which the text says where the pool is: its site, and what differs there.

    An entry of `failover` that names the pool's own site is what the pool is there.
    """
    written = json.dumps(msgspec.to_builtins(entry, enc_hook=str))
    for key, text in (("site", entry.site), ("failover", f"[{written}]")):
        place = place_of(document, structured.original(("pools", name, key)))
        if place is not None:
            yield place.start, place.end, f"{key}: {text}"


def _costs(there: Mapping[str, Pool], sites: Mapping[str, Site], catalog: Catalog) -> str:
    """Return what a node costs at each site: "$55.04/h at east, an unknown price at west"."""
    costs = []
    for name, pool in there.items():
        usd = usd_per_node_hour(pool, sites[name], catalog) if name in sites else None
        costs.append(f"{'an unknown price' if usd is None else f'${usd:,.2f}/h'} at {name}")
    return ", ".join(costs)
