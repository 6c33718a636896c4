"""Which purchase option of its market a pool is bought on next: a decision from values alone.

Options are tried in their order, each once. The nodes of a pool are on one option, unless the spec
says `mixed: true`: then those that were created are kept, and only the missing ones are tried on
the next option. An option above the remaining budget is skipped, and so is a capacity block that
was not requested by name. Where the list ends, new purchases are released, unless the pool's quorum
is met. Machines that existed before are never released: growing a pool replaces nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from ....schemas.derived.hostlist import expand
from ....stacks.provider import PurchaseOption
from ...state.event_types import PurchaseAttempted, RunStarted
from ...state.events import Event, is_stale

_CENT = 0.005
"""USD/h by which sums of prices may differ from a ceiling: they are sums of floats."""


class OptionOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """The user's choice for a pool, by its name."""

    buy: frozenset[str] = frozenset()
    """Pools whose capacity block may be bought."""
    offerings: Mapping[str, str] = {}
    """"POOL/OPTION" -> id of the block on offer that the plan shows."""
    again: frozenset[str] = frozenset()
    """Pools that shall be bought again from the first option, whatever they hold."""


NO_WISHES = OptionOverrides()


class PoolFallback(msgspec.Struct, frozen=True, kw_only=True):
    """A pool and the ways it may be bought."""

    pool: str
    site: str
    nodes: tuple[str, ...]
    """Those that are always there."""
    options: tuple[PurchaseOption, ...]
    mixed: bool = False
    quorum: int | None = None
    elastic: int = 0
    """Nodes that may come beyond."""

    @property
    def mixes(self) -> bool:
        """Whether its nodes may be on several options: the spec allows it and the cloud can."""
        return self.mixed and not any(option.whole for option in self.options)

    def option(self, key: str) -> PurchaseOption | None:
        """Return an option; None where the list has none of this key."""
        return next((option for option in self.options if option.key == key), None)

    def suffices(self, count: int) -> bool:
        """Return whether this many nodes meet the quorum."""
        return count >= len(self.nodes) or (self.quorum is not None and count >= self.quorum)

    def usd_per_hour(self, on: dict[str, str], elastic: float = 1.0) -> float | None:
        """Return what nodes cost on these options, with a share of the elastic ones; None: unknown.

        Elastic nodes count at the price of the dearest of these options.
        """
        rates = [self._rate(key) for key in on.values()]
        known = [rate for rate in rates if rate is not None]
        if len(known) < len(rates):
            return None
        return sum(known) + max(known, default=0.0) * self.elastic * elastic

    def _rate(self, key: str) -> float | None:
        option = self.option(key)
        return None if option is None else option.usd_per_hour


class Headroom(msgspec.Struct, frozen=True, kw_only=True):
    """What a ceiling of the budget leaves for one pool."""

    ceiling: str
    """Its place in the spec: budget.max_usd_per_hour."""
    usd_per_hour: float
    elastic: float = 1.0
    """Share of the elastic nodes that counts."""


class Complete(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes exist."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """Request the missing nodes on this option."""

    option: PurchaseOption
    nodes: tuple[str, ...]
    skipped: tuple[FailedAttempt, ...] = ()


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """Remove these nodes first: no option gave enough of them."""

    nodes: tuple[str, ...]
    skipped: tuple[FailedAttempt, ...] = ()


class Exhausted(msgspec.Struct, frozen=True, kw_only=True):
    """The list ends without these nodes."""

    missing: tuple[str, ...]
    skipped: tuple[FailedAttempt, ...] = ()


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """A purchase was begun and killed: whether it was made isn't known, and it isn't repeated."""

    option: PurchaseOption
    nodes: tuple[str, ...]


Decision: TypeAlias = Complete | Attempt | Release | Exhausted | Blocked


def prune_to_spec(fallback: PoolFallback, progress: PurchaseProgress) -> PurchaseProgress:
    """Return the progress without nodes and options that the spec dropped.

    An option that is still in the list is kept, wherever it is there now.
    """
    if progress.site != fallback.site:
        return PurchaseProgress(site=fallback.site)
    keys = {option.key for option in fallback.options}
    nodes = set(fallback.nodes)
    held = {n: option for n, option in progress.held.items() if n in nodes and option in keys}
    return msgspec.structs.replace(
        progress,
        held=held,
        fresh=progress.fresh & held.keys(),
        loose=progress.loose & nodes,
        trying=progress.trying if progress.trying in keys else "",
        tried=tuple(tried for tried in progress.tried if tried.option in keys),
        paid=progress.paid if progress.paid in keys else "",
    )


def decide(
    fallback: PoolFallback,
    progress: PurchaseProgress,
    *,
    headroom: tuple[Headroom, ...] = (),
    buys: bool = False,
) -> Decision:
    """Return what to do next with a pool.

    Args:
        fallback: the pool.
        progress: its state, after `prune_to_spec` for this fallback list.
        headroom: what each ceiling leaves for it; empty: no ceiling.
        buys: its capacity block was requested by name.
    """
    if progress.loose:
        return Release(nodes=_ordered(fallback, progress.loose))
    missing = tuple(node for node in fallback.nodes if node not in progress.held)
    if not missing:
        return Complete()
    trying = fallback.option(progress.trying)
    if trying is not None:
        unknown = trying.buy_hours is not None and not buys and progress.paid != trying.key
        again = Attempt(option=trying, nodes=missing)
        return Blocked(option=trying, nodes=missing) if unknown else again
    skipped: list[FailedAttempt] = []
    enough = fallback.suffices(len(progress.held))
    if not (enough and progress.tried and not fallback.mixes):
        for option in _open_options(fallback, progress):
            reason = why_not(fallback, progress, option, headroom, buys=buys)
            if not reason:
                return Attempt(option=option, nodes=missing, skipped=tuple(skipped))
            skipped.append(FailedAttempt(option=option.key, outcome="skipped", reason=reason))
    if progress.fresh and not enough and not progress.paid:
        return Release(nodes=_ordered(fallback, progress.fresh), skipped=tuple(skipped))
    return Exhausted(missing=missing, skipped=tuple(skipped))


def keep_or_release(
    fallback: PoolFallback, progress: PurchaseProgress, lacking: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (kept, loose) of the nodes that came although others of the pool did not."""
    came = [n for n in fallback.nodes if n not in progress.held and n not in lacking]
    still = len(progress.held.keys() - lacking)
    keeps = fallback.mixes or progress.paid or fallback.suffices(still + len(came))
    return (tuple(came), ()) if keeps else ((), tuple(came))


def options_after(
    fallback: PoolFallback, progress: PurchaseProgress, decision: Decision
) -> dict[str, str]:
    """Return node -> option that it shall be on for a decision; "": it shall not be there."""
    on = {node: progress.held.get(node, "") for node in fallback.nodes}
    if isinstance(decision, Attempt | Blocked):
        on |= dict.fromkeys(decision.nodes, decision.option.key)
    elif isinstance(decision, Release):
        on |= dict.fromkeys(decision.nodes, "")
    return on


def _open_options(fallback: PoolFallback, progress: PurchaseProgress) -> list[PurchaseOption]:
    """Return the options to try: where nodes exist and don't mix, only theirs."""
    attempts_text = {tried.option for tried in progress.tried}
    only = {progress.paid} if progress.paid else set[str]()
    if not only and not fallback.mixes:
        only = set(progress.held.values())
    return [
        r for r in fallback.options if r.key not in attempts_text and (not only or r.key in only)
    ]


def why_not(
    fallback: PoolFallback,
    progress: PurchaseProgress,
    option: PurchaseOption,
    headroom: tuple[Headroom, ...],
    *,
    buys: bool,
) -> str:
    """Return why an option is not tried for the missing nodes; "" where it is."""
    missing = [node for node in fallback.nodes if node not in progress.held]
    if option.buy_hours is not None and progress.paid != option.key and not buys:
        return (
            f"a capacity block of {option.buy_hours} h is bought only with "
            f"--buy-capacity-block {fallback.pool}"
        )
    for room in headroom:
        on = progress.held | dict.fromkeys(missing, option.key)
        costs = fallback.usd_per_hour(on, room.elastic)
        if costs is None:
            return f"its price is unknown, and {room.ceiling} is a ceiling"
        if costs > room.usd_per_hour + _CENT:
            left = max(0.0, room.usd_per_hour)
            return f"the pool would cost ${costs:,.2f}/h, {room.ceiling} leaves ${left:,.2f}/h"
    return ""


def _ordered(fallback: PoolFallback, nodes: frozenset[str]) -> tuple[str, ...]:
    return tuple(node for node in fallback.nodes if node in nodes)


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An option that gave nothing, or not enough."""

    option: str
    outcome: Literal["refused", "skipped"]
    reason: str
    time: datetime | None = None


class PurchaseProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a pool is on its fallback list."""

    site: str = ""
    held: dict[str, str] = {}
    """Node -> option, of the nodes that were made and are kept."""
    fresh: frozenset[str] = frozenset()
    """Of those: made by the attempt that is not over."""
    loose: frozenset[str] = frozenset()
    """Made on an option that didn't give enough: to be taken back."""
    trying: str = ""
    """Option that is being tried, with an unknown result yet."""
    tried: tuple[FailedAttempt, ...] = ()
    """In the attempt that is not over."""
    last: tuple[FailedAttempt, ...] = ()
    """In the attempt that ended last."""
    paid: str = ""
    """Option whose capacity block was bought: it isn't left for another."""

    def after(self, step: PurchaseAttempted, time: datetime | None = None) -> PurchaseProgress:
        """Return the progress after one more step."""
        change = msgspec.structs.replace
        nodes = frozenset(expand(step.nodes)) if step.nodes else frozenset()
        found = self if self.site == step.site else PurchaseProgress(site=step.site)
        match step.outcome:
            case "trying":
                found = change(found, trying=step.option)
            case "held":
                new = nodes - found.held.keys()
                held = found.held | dict.fromkeys(sorted(nodes), step.option)
                found = change(found, held=held, fresh=found.fresh | new)
            case "refused" | "skipped":
                found = found.after_failure(step, nodes, time)
            case "bought":
                found = change(found, paid=step.option)
            case "taken-back":
                found = found.without(nodes)
            case "again":
                found = PurchaseProgress(site=step.site)
            case "given-up":
                pass
        if step.ends:
            found = change(found, fresh=frozenset(), trying="", tried=(), last=found.tried)
        return found

    def after_failure(
        self, step: PurchaseAttempted, nodes: frozenset[str], time: datetime | None
    ) -> PurchaseProgress:
        """Return the progress after an option that gave nothing, or not enough."""
        refused = step.outcome == "refused"
        attempts_text = FailedAttempt(
            option=step.option,
            outcome="refused" if refused else "skipped",
            reason=step.reason,
            time=time,
        )
        loose = frozenset(expand(step.loose)) if step.loose else frozenset()
        kept = self.without(nodes | loose)
        return msgspec.structs.replace(
            kept,
            tried=(*self.tried, attempts_text),
            loose=kept.loose | loose,
            trying="" if refused else self.trying,
        )

    def without(self, nodes: frozenset[str]) -> PurchaseProgress:
        """Return the progress without nodes that are gone."""
        return msgspec.structs.replace(
            self,
            held={node: option for node, option in self.held.items() if node not in nodes},
            fresh=self.fresh - nodes,
            loose=self.loose - nodes,
        )


def progress_by_pool(events: Iterable[Event]) -> dict[str, PurchaseProgress]:
    """Return pool -> its progress; a `down` that began clears all."""
    newest: dict[str, int] = {}
    found: dict[str, PurchaseProgress] = {}
    for event in events:
        if is_stale(event, newest):
            continue
        newest.update(event.epochs)
        match event.body:
            case PurchaseAttempted() as step:
                found[step.pool] = found.get(step.pool, PurchaseProgress(site=step.site)).after(
                    step, event.time
                )
            case RunStarted(command="down"):
                found.clear()
            case _:
                pass
    return found
