"""Walks the ladders of a site: applies it, goes one rung on where the cloud has no capacity.

Each step is an event, written before the call that it is about: a run that is killed goes on with
the rung that it was asking for, and doesn't ask again where the cloud had said no.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ...schemas.decoding import convert
from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic
from ...stacks.provider import ProviderError
from ...stacks.pulumi.errors import first_line
from ..outcome import Exit, LifecycleError
from ..sites import OpenSite
from ..state.event_types import RungTried
from .report import ended_short, on_a_later_rung, purchase_unknown
from .rung import (
    Blocked,
    Decision,
    GiveUp,
    Hold,
    TakeBack,
    Try,
    sorted_out,
)
from .standing import Ladders

if TYPE_CHECKING:
    from ..cluster import Cluster


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """How a site was left."""

    taken: dict[str, str]
    """Node -> rung that it stands on; "": it is not there."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What could not be made."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider said to one try."""

    lacking: dict[str, dict[str, str]]
    """Pool -> node -> the cloud's own words; the node "" is a capacity block."""
    others: tuple[Diagnostic, ...] = ()
    """Errors that no other rung helps against."""


def apply_site(
    cluster: Cluster, site: OpenSite, ladders: Ladders, tell: Callable[[Diagnostic], None]
) -> Applied:
    """Make a site what the spec says, on the first rungs of its pools that have capacity.

    `tell` is given what a person should know although it is no error.

    Raises:
        LifecycleError: GC955, a purchase was killed and it isn't known whether it was made.
    """
    return _SiteWalk(cluster, site, ladders).walk(tell)


class _SiteWalk:
    """One site while it is applied."""

    def __init__(self, cluster: Cluster, site: OpenSite, ladders: Ladders) -> None:
        self._cluster = cluster
        self._site = site
        self._book = ladders
        self._pools = [n for n, ladder in ladders.ladders.items() if ladder.site == site.name]

    def walk(self, tell: Callable[[Diagnostic], None]) -> Applied:
        for pool in self._pools:
            if pool in self._book.wishes.again:
                self._record(pool, "again")
        decisions = self._decide()
        while True:
            self._announce(decisions)
            answer = self._apply(self._book.taken(decisions, self._site.name))
            moved = self._take(decisions, answer)
            decisions = self._decide()
            if not moved or not any(isinstance(d, Try | TakeBack) for d in decisions.values()):
                break
        short = self._end(decisions)
        for pool in self._pools:
            later = on_a_later_rung(self._book.ladders[pool], self._book.walks[pool])
            if later is not None:
                tell(later)
        taken = self._book.taken(decisions, self._site.name)
        return Applied(taken=taken, diagnostics=(*short, *answer.others))

    def _decide(self) -> dict[str, Decision]:
        return {pool: self._book.decide(pool) for pool in self._pools}

    def _announce(self, decisions: dict[str, Decision]) -> None:
        """Record what is about to be asked for, and what is not."""
        blocked = [
            purchase_unknown(pool, decision.rung)
            for pool, decision in decisions.items()
            if isinstance(decision, Blocked)
        ]
        if blocked:
            raise LifecycleError(*blocked, exit_code=Exit.REFUSED)
        for pool, decision in decisions.items():
            self._skip(pool, decision)
            walk = self._book.walks[pool]
            if isinstance(decision, Try) and walk.trying != decision.rung.key:
                self._record(pool, "trying", decision.rung.key, decision.nodes)

    def _skip(self, pool: str, decision: Decision) -> None:
        if isinstance(decision, Try | TakeBack | GiveUp):
            for skipped in decision.skipped:
                self._record(pool, "skipped", skipped.rung, reason=skipped.reason)

    def _apply(self, taken: dict[str, str]) -> _Answer:
        site = self._site.taking(taken, self._book.wishes.buy)
        try:
            site.provider.apply(site.context)
        except ProviderError as error:
            return self._understood(error)
        return _Answer(lacking={})

    def _understood(self, error: ProviderError) -> _Answer:
        """Sort what a provider raised into pools without capacity and all other errors."""
        spec, name = self._site.context.spec, self._site.name
        provider = self._site.provider
        known = provider.purchases(spec, name)
        lacking: dict[str, dict[str, str]] = {}
        explained: list[Diagnostic] = []
        for resource, diagnostic in error.lacking.items():
            bought = known.get(resource)
            if bought is None or bought.pool not in self._pools:
                continue
            words = first_line(diagnostic.detail or diagnostic.summary)
            nodes = bought.nodes or ("",)
            lacking.setdefault(bought.pool, {}).update(dict.fromkeys(nodes, words))
            explained.append(diagnostic)
        others = tuple(d for d in error.diagnostics if d not in explained)
        return _Answer(lacking=lacking, others=others)

    def _take(self, decisions: dict[str, Decision], answer: _Answer) -> bool:
        """Record what came of it; return whether any pool came further."""
        moved = False
        for pool, decision in decisions.items():
            words = answer.lacking.get(pool)
            if words is not None and self._is_about(pool, decision, words):
                self._refused(pool, decision, words)
            elif answer.others:
                continue  # whether it came isn't known: the next run asks for the same
            elif isinstance(decision, Try):
                self._bought(pool, decision)
                self._record(pool, "held", decision.rung.key, decision.nodes, ends=True)
            elif isinstance(decision, TakeBack):
                self._record(pool, "taken-back", nodes=decision.nodes)
            else:
                continue
            moved = True
        return moved

    def _is_about(self, pool: str, decision: Decision, words: dict[str, str]) -> bool:
        """Say whether a refusal is of what was asked for, or of nodes that stood."""
        return isinstance(decision, Try) or bool(words.keys() & self._book.walks[pool].standing)

    def _refused(self, pool: str, decision: Decision, words: dict[str, str]) -> None:
        """Record a refusal: what came stays or is loose, and the next rung is up."""
        ladder, walk = self._book.ladders[pool], self._book.walks[pool]
        rung = decision.rung.key if isinstance(decision, Try) else ""
        if isinstance(decision, Try) and "" not in words:
            self._bought(pool, decision)
            walk = self._book.walks[pool]
        lacking = frozenset(ladder.nodes) if "" in words else frozenset(words)
        rung = rung or next((walk.standing[n] for n in sorted(lacking) if n in walk.standing), "")
        kept, loose = sorted_out(ladder, walk, lacking) if isinstance(decision, Try) else ((), ())
        if kept:
            self._record(pool, "held", rung, kept)
        reason = "; ".join(dict.fromkeys(words.values()))
        self._record(pool, "refused", rung, lacking, loose=loose, reason=reason)

    def _bought(self, pool: str, decision: Try) -> None:
        if decision.rung.buy_hours is not None and not self._book.walks[pool].paid:
            self._record(pool, "bought", decision.rung.key)

    def _end(self, decisions: dict[str, Decision]) -> list[Diagnostic]:
        """Record which walks ended short; return what is said of them."""
        found: list[Diagnostic] = []
        for pool, decision in decisions.items():
            walk = self._book.walks[pool]
            if isinstance(decision, GiveUp):
                self._skip(pool, decision)
                self._record(pool, "given-up", nodes=decision.missing, ends=True)
                found.append(
                    ended_short(
                        self._book.ladders[pool],
                        self._book.walks[pool],
                        decision.missing,
                        spec=str(self._cluster.spec_path),
                    )
                )
            elif isinstance(decision, Hold) and (walk.tried or walk.fresh):
                self._record(pool, "held", ends=True)
        return found

    def _record(
        self,
        pool: str,
        outcome: str,
        rung: str = "",
        nodes: tuple[str, ...] | frozenset[str] = (),
        *,
        loose: tuple[str, ...] = (),
        reason: str = "",
        ends: bool = False,
    ) -> None:
        """Write one step and take it."""
        step = convert(
            {
                "site": self._site.name,
                "pool": pool,
                "rung": rung,
                "outcome": outcome,
                "nodes": fold(sorted(nodes)) if nodes else "",
                "loose": fold(loose) if loose else "",
                "reason": reason,
                "ends": ends,
            },
            RungTried,
        )
        event = self._cluster.events.append(step)
        self._book.walks[pool] = self._book.walks[pool].after(step, event.time)
