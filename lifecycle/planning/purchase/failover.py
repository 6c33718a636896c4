"""At which of its sites a pool is: where its nodes are, else the next that was not given up.

It follows from the cluster's events alone, so a run that was killed continues at the same site, and
every command sees the pool at one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ...state.event_types import PurchaseAttempted, RunStarted
from ...state.events import Event, is_stale
from .decision import progress_by_pool


class _Round(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pool with several sites."""

    held: str = ""
    """The site of its nodes; "": it has none."""
    given_up: frozenset[str] = frozenset()
    """Sites whose options all ended since nodes were held, or since the first was tried again."""


def _rounds(events: Iterable[Event]) -> dict[str, _Round]:
    kept = list(events)
    newest: dict[str, int] = {}
    given: dict[str, frozenset[str]] = {}
    for event in kept:
        if is_stale(event, newest):
            continue
        newest.update(event.epochs)
        match event.body:
            case PurchaseAttempted(outcome="given-up") as step:
                before = given.get(step.pool, frozenset())
                # A site for the second time begins a round.
                given[step.pool] = (frozenset() if step.site in before else before) | {step.site}
            case PurchaseAttempted(outcome="again") as step:
                given.pop(step.pool, None)
            case RunStarted(command="down"):
                given.clear()
            case _:
                pass
    progress = progress_by_pool(kept)
    return {
        pool: _Round(
            held=progress[pool].site if pool in progress and progress[pool].held else "",
            given_up=given.get(pool, frozenset()),
        )
        for pool in progress.keys() | given.keys()
    }


def sites_now(
    orders: Mapping[str, tuple[str, ...]],
    events: Iterable[Event],
    again: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """Return pool -> the site that it is at.

    Args:
        orders: pool -> its sites, the one to try first first.
        events: the cluster's.
        again: pools that are to be bought from the start, whatever they hold.
    """
    rounds = _rounds(events) if orders else {}
    found = {}
    for pool, order in orders.items():
        known = _Round() if pool in again else rounds.get(pool, _Round())
        left = [site for site in order if site not in known.given_up]
        found[pool] = known.held if known.held in order else (left or order)[0]
    return found


def next_sites(
    orders: Mapping[str, tuple[str, ...]], at: Mapping[str, str], events: Iterable[Event]
) -> dict[str, str]:
    """Return pool -> the site to try next, for pools whose own just had none of their nodes.

    Args:
        orders: as above.
        at: pool -> the site that it is at.
        events: the cluster's, after the site was applied.
    """
    rounds = _rounds(events) if orders else {}
    found = {}
    for pool, order in orders.items():
        known = rounds.get(pool, _Round())
        if known.held or at[pool] not in known.given_up:
            continue
        left = [site for site in order if site not in known.given_up]
        if left:
            found[pool] = left[0]
    return found
