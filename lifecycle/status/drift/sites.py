"""Drift of what sites made: their own comparison, and their list against the ledger."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ....stacks.provider import Leftover, ProviderError, ResourceChange
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite
from ...down.ledger_check import SiteLedger, leftovers_of, missing_resources
from .values import Drift

_NOW = {
    "create": "it is not there",
    "update": "it is otherwise",
    "replace": "it has to be recreated",
    "delete": "it is there and not wanted",
}


class SiteObservation(msgspec.Struct, frozen=True, kw_only=True):
    """What a site answered."""

    changes: tuple[ResourceChange, ...] = ()
    """What `up` would do there."""
    since: tuple[ResourceChange, ...] = ()
    """Resources that changed outside of the site's own records."""
    listed: tuple[Leftover, ...] = ()
    booked: frozenset[str] = frozenset()
    problem: str = ""
    """Why it could not be queried; "" when it was."""


def compare(site: OpenSite) -> tuple[ResourceChange, ...] | ProviderError:
    """Query a site for what `up` would do there."""
    try:
        return site.provider.preview(site.context)
    except ProviderError as error:
        return error


def list_site(site: OpenSite) -> SiteObservation:
    """Query a site for all resources with its tag, and for changes of those it recorded."""
    provider, context = site.provider, site.context
    try:
        since = provider.detect_drift(context)
        listed = provider.sweep(context)
        booked = provider.tracked_ids(context, listed)
    except ProviderError as error:
        return SiteObservation(problem=error.diagnostics[0].summary)
    return SiteObservation(since=since, listed=listed, booked=booked)


def site_drifts(
    cluster: Cluster, site: str, observation: SiteObservation, without: Collection[str]
) -> list[Drift]:
    """Return what differs at a site, each item once (`without`: nodes in the repair queue)."""
    found: dict[tuple[str, str], Drift] = {}

    def take(kind: str, name: str, now: str, *, fixable: bool, hint: str = "") -> None:
        if name not in without:
            found.setdefault(
                (kind, name),
                Drift(
                    plane="cloud",
                    where=site,
                    kind=kind,
                    name=name,
                    was="" if hint else "as the spec says",
                    now=now,
                    fixable=fixable,
                    hint=hint,
                ),
            )

    for change in observation.changes:
        if change.effect != "keep":
            now = change.reason or _NOW[change.effect]
            take(change.resource.kind, change.resource.name, now, fixable=True)
    for change in observation.since:
        if change.effect != "keep":
            deleted = change.effect == "delete"
            now = "it is gone" if deleted else f"changed there: {change.reason or 'in some way'}"
            take(change.resource.kind, change.resource.name, now, fixable=True)
    books = SiteLedger(
        existing=cluster.ledger.existing(site),
        intents=cluster.ledger.open_intents(site),
        booked=observation.booked,
    )
    for gone in missing_resources(site, observation.listed, books):
        kind, _, name = gone.key.partition("/")
        take(kind, name, "it is not there", fixable=True)
    for stray in leftovers_of(site, observation.listed, books, ended=False):
        hint = f"gcluster ledger check {cluster.name}"
        take(stray.item.kind, stray.item.name, f"there, and {stray.why}", fixable=False, hint=hint)
    return list(found.values())
