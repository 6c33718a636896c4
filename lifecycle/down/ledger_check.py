"""Compares the sites' lists of resources with the ledger, to find unrecorded ones that cost money.

The record is the ledger and, where a site's resources are in a stack, that stack. While a cluster
runs, recorded resources are no leftovers; once its removal was begun, all but kept data are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import TypeAlias

import msgspec

from ...inventory.hosts import elastic_nodes
from ...schemas.diagnostics import Diagnostic
from ...stacks.provider import Leftover, ProviderError
from ..cluster.cluster import Cluster
from ..cluster.open_site import OpenSite, at_each
from ..cluster.outcome import Exit
from ..cluster.remains import refuse_lost
from ..cluster.sites import open_sites
from ..state import ExistingResource, Intent, Journal
from .data import priced

UNKNOWN = "in no ledger: another run began it and was killed, or it was made by hand"
AFTER_END = "the cluster was taken down, and this is still there"
BEGUN = "a run that was killed had begun to create it"


class UnknownResource(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is there and should not be."""

    site: str
    item: Leftover
    why: str


class MissingResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource in the ledger that its site doesn't list."""

    site: str
    key: str
    """"node/gpu001"."""
    provider_id: str


class LedgerCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster ledger check`."""

    cluster: str
    ended: bool
    """Whether its `down` was begun: then nothing but kept data may be there."""
    listed: int
    """Number of resources that the sites listed."""
    leftovers: tuple[UnknownResource, ...]
    usd_per_hour: float | None
    """Of all leftovers; None: the price of one is unknown."""
    known_usd_per_hour: float
    """Of those whose price is known."""
    absent: tuple[MissingResource, ...]
    kept: tuple[Leftover, ...]
    """Data that is kept after `down`, and the resource that holds it; () while the cluster runs."""
    silent: dict[str, str]
    """Site -> why it could not be queried: whether leftovers exist there is unknown."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """LEFTOVERS where something is left; FAILED where that isn't known."""
        if self.leftovers:
            return Exit.LEFTOVERS
        return Exit.FAILED if self.silent else Exit.OK


class SiteLedger(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one site."""

    existing: tuple[ExistingResource, ...]
    intents: tuple[Intent, ...]
    booked: frozenset[str]
    """Provider ids in the site's stack."""


_SiteCheck: TypeAlias = tuple[tuple[Leftover, ...], frozenset[str]] | ProviderError


def check_ledger(cluster: Cluster) -> LedgerCheck:
    """List each site's resources with the cluster's tag, and compare them with the ledger.

    Nothing is changed, and no lock is taken: what a run creates meanwhile may be shown as a
    leftover.
    """
    ended = has_ended(cluster)
    sites = open_sites(cluster)
    refuse_lost(cluster, sites, by_tag=True)
    answers = at_each(sites, _site_ledger)
    strays: list[UnknownResource] = []
    absent: list[MissingResource] = []
    kept: list[Leftover] = []
    for name, answer in answers.items():
        if isinstance(answer, ProviderError):
            continue
        found = priced(cluster, answer[0])
        site_ledger = SiteLedger(
            existing=cluster.ledger.existing(name),
            intents=cluster.ledger.open_intents(name),
            booked=answer[1],
        )
        strays += leftovers_of(name, found, site_ledger, ended=ended)
        absent += missing_resources(name, found, site_ledger)
        kept += [item for item in found if item.kept_data and ended]
    silent = {n: e.diagnostics[0] for n, e in answers.items() if isinstance(e, ProviderError)}
    return _ledger_entries(
        cluster,
        ended=ended,
        listed=sum(
            len(answer[0]) for answer in answers.values() if not isinstance(answer, ProviderError)
        ),
        strays=strays,
        absent=absent,
        kept=kept,
        silent=silent,
    )


def has_ended(cluster: Cluster) -> bool:
    """Return whether the last operation on the whole cluster was its removal."""
    runs = (run.command for run in reversed(Journal(cluster.events).runs()))
    return next((command == "down" for command in runs if command in {"up", "down"}), False)


def leftovers_of(
    site: str, found: Iterable[Leftover], site_ledger: SiteLedger, *, ended: bool
) -> list[UnknownResource]:
    """Return what is there and shouldn't be, in the order of the site's list (pure)."""
    ours = {resource.provider_id for resource in site_ledger.existing} | site_ledger.booked
    listed = tuple(found)
    there = {item.provider_id for item in listed}
    # A list may spell ids differently than the call that created the resource: then the name
    # decides.
    named = {resource.key for resource in site_ledger.existing if resource.provider_id not in there}
    begun = {intent.resource_key for intent in site_ledger.intents}
    strays = []
    for item in listed:
        key = f"{item.kind}/{item.name}"
        if item.kept_data or (not ended and (item.provider_id in ours or key in named)):
            continue
        why = AFTER_END if ended else BEGUN if key in begun else UNKNOWN
        strays.append(UnknownResource(site=site, item=item, why=why))
    return strays


def missing_resources(
    site: str, found: Collection[Leftover], site_ledger: SiteLedger
) -> list[MissingResource]:
    """Return what the ledger has and the site's list hasn't (pure).

    Of a kind that the site doesn't list, as a stack or a scale set's machine, nothing is known.
    """
    ids = {item.provider_id for item in found}
    keys = {f"{item.kind}/{item.name}" for item in found}
    kinds = {item.kind for item in found}
    return [
        MissingResource(site=site, key=resource.key, provider_id=resource.provider_id)
        for resource in site_ledger.existing
        if resource.provider_id not in ids
        and resource.key not in keys
        and (resource.kind in kinds or not found)
    ]


def close_missing(cluster: Cluster, site: OpenSite) -> None:
    """Mark nodes as removed in the ledger that no longer exist.

    A run that was killed between removing and recording leaves such entries. The site's list is
    only read where an entry has no host, or a node has two. Requires the site's lock. Elastic nodes
    are left alone: their agent holds another lock, and a machine that it has just created may not
    be listed yet. So may one of a run that could not wait for the list.
    """
    others = _elastic(cluster)
    nodes = [
        entry
        for entry in _listed(cluster, site)
        if entry.kind == "node" and entry.key not in others
    ]
    if not nodes:
        return
    hosts = {f"node/{host.name}" for host in site.provider.hosts(site.context)}
    many = Counter(entry.key for entry in nodes)
    doubted = [entry for entry in nodes if entry.key not in hosts or many[entry.key] > 1]
    if not doubted:
        return
    there = {item.provider_id for item in site.provider.sweep(site.context)}
    seen = {entry.key for entry in doubted if entry.provider_id in there}
    for entry in doubted:
        # Of a node that is there, one entry must be: else the list spells its id otherwise.
        if entry.provider_id not in there and (entry.key not in hosts or entry.key in seen):
            cluster.ledger.deleted(site.name, entry.key, entry.provider_id)


def _listed(cluster: Cluster, site: OpenSite) -> list[ExistingResource]:
    """Return the site's entries that its list has by now, where they exist."""
    entries = cluster.ledger.existing(site.name)
    lag = site.provider.listing_lag_s(site.context)
    if not lag:
        return list(entries)
    by_now = cluster.events.now() - timedelta(seconds=lag)
    return [entry for entry in entries if entry.since <= by_now]


def _elastic(cluster: Cluster) -> frozenset[str]:
    """Return the keys of nodes that come and go, by the spec and as it was applied."""
    specs = (cluster.spec, cluster.applied_spec or cluster.spec)
    pools = (names for spec in specs for names in elastic_nodes(spec).values())
    return frozenset(f"node/{name}" for names in pools for name in names)


def _site_ledger(site: OpenSite) -> _SiteCheck:
    try:
        found = site.provider.sweep(site.context)
        return found, site.provider.tracked_ids(site.context, found)
    except ProviderError as error:
        return error


def _ledger_entries(
    cluster: Cluster,
    *,
    ended: bool,
    listed: int = 0,
    strays: Iterable[UnknownResource] = (),
    absent: Iterable[MissingResource] = (),
    kept: Iterable[Leftover] = (),
    silent: dict[str, Diagnostic] | None = None,
) -> LedgerCheck:
    left = tuple(strays)
    prices = [stray.item.usd_per_hour for stray in left]
    known = [price for price in prices if price is not None]
    return LedgerCheck(
        cluster=cluster.name,
        ended=ended,
        listed=listed,
        leftovers=left,
        usd_per_hour=sum(known) if len(known) == len(prices) else None,
        known_usd_per_hour=sum(known),
        absent=tuple(absent),
        kept=tuple(kept),
        silent={name: diagnostic.summary for name, diagnostic in (silent or {}).items()},
        diagnostics=tuple((silent or {}).values()),
    )
