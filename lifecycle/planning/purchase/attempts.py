"""Applies a site, taking the next purchase option of a pool where the cloud has no capacity.

Each step is an event, written before the call that it is about: after a kill the next run continues
with the option that was being tried, and doesn't retry those that the cloud refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ....schemas.derived.hostlist import fold
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.structure.decoding import convert
from ....stacks.provider import ProviderError, PurchaseOption
from ....stacks.pulumi.engine.events import first_line
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite
from ...cluster.outcome import Exit, LifecycleError
from ...state.event_types import PurchaseAttempted
from .decision import (
    Attempt,
    Blocked,
    Complete,
    Decision,
    Exhausted,
    FailedAttempt,
    PoolFallback,
    PurchaseProgress,
    Release,
    keep_or_release,
)
from .fallback_lists import FallbackLists


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """How a site was left."""

    taken: dict[str, str]
    """Node -> option that it is on; "": it is not there."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What could not be made."""


class _Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's response to one attempt."""

    lacking: dict[str, dict[str, str]]
    """Pool -> node -> the cloud's message; the node "" is a capacity block."""
    others: tuple[Diagnostic, ...] = ()
    """Errors that no other option helps against."""


def apply_site(
    cluster: Cluster, site: OpenSite, fallbacks: FallbackLists, emit: Callable[[Diagnostic], None]
) -> Applied:
    """Apply the spec to a site, on the first options of its pools that have capacity.

    `emit` receives notes that are no errors.

    Raises:
        LifecycleError: GC955, a purchase was killed and its result is unknown.
    """
    return _SitePurchase(cluster, site, fallbacks).progress(emit)


class _SitePurchase:
    """One site while it is applied."""

    def __init__(self, cluster: Cluster, site: OpenSite, fallbacks: FallbackLists) -> None:
        self._cluster = cluster
        self._site = site
        self._lists = fallbacks
        self._pools = [
            n for n, fallback in fallbacks.fallbacks.items() if fallback.site == site.name
        ]

    def progress(self, emit: Callable[[Diagnostic], None]) -> Applied:
        for pool in self._pools:
            if pool in self._lists.wishes.again:
                self._record(pool, "again")
        decisions = self._decide()
        while True:
            self._announce(decisions)
            answer = self._apply(self._lists.purchased(decisions, self._site.name))
            moved = self._take(decisions, answer)
            decisions = self._decide()
            if not moved or not any(isinstance(d, Attempt | Release) for d in decisions.values()):
                break
        short = self._end(decisions)
        for pool in self._pools:
            later = later_option_note(
                self._lists.fallbacks[pool], self._lists.progress_by_pool[pool]
            )
            if later is not None:
                emit(later)
        taken = self._lists.purchased(decisions, self._site.name)
        return Applied(taken=taken, diagnostics=(*short, *answer.others))

    def _decide(self) -> dict[str, Decision]:
        return {pool: self._lists.decide(pool) for pool in self._pools}

    def _announce(self, decisions: dict[str, Decision]) -> None:
        """Record what is about to be requested, and what is not."""
        blocked = [
            purchase_unknown(pool, decision.option)
            for pool, decision in decisions.items()
            if isinstance(decision, Blocked)
        ]
        if blocked:
            raise LifecycleError(*blocked, exit_code=Exit.REFUSED)
        for pool, decision in decisions.items():
            self._skip(pool, decision)
            progress = self._lists.progress_by_pool[pool]
            if isinstance(decision, Attempt) and progress.trying != decision.option.key:
                self._record(pool, "trying", decision.option.key, decision.nodes)

    def _skip(self, pool: str, decision: Decision) -> None:
        if isinstance(decision, Attempt | Release | Exhausted):
            for skipped in decision.skipped:
                self._record(pool, "skipped", skipped.option, reason=skipped.reason)

    def _apply(self, taken: dict[str, str]) -> _Attempt:
        site = self._site.taking(taken, self._lists.wishes)
        try:
            site.provider.apply(site.context)
        except ProviderError as error:
            return self._understood(error)
        return _Attempt(lacking={})

    def _understood(self, error: ProviderError) -> _Attempt:
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
        return _Attempt(lacking=lacking, others=others)

    def _take(self, decisions: dict[str, Decision], answer: _Attempt) -> bool:
        """Record what came of it; return whether any pool came further."""
        moved = False
        for pool, decision in decisions.items():
            words = answer.lacking.get(pool)
            if words is not None and self._is_about(pool, decision, words):
                self._refused(pool, decision, words)
            elif answer.others:
                continue  # its result is unknown: the next run requests the same
            elif isinstance(decision, Attempt):
                self._bought(pool, decision)
                self._record(pool, "held", decision.option.key, decision.nodes, ends=True)
            elif isinstance(decision, Release):
                self._record(pool, "taken-back", nodes=decision.nodes)
            else:
                continue
            moved = True
        return moved

    def _is_about(self, pool: str, decision: Decision, words: dict[str, str]) -> bool:
        """Return whether a refusal is of requested nodes, or of existing ones."""
        return isinstance(decision, Attempt) or bool(
            words.keys() & self._lists.progress_by_pool[pool].held
        )

    def _refused(self, pool: str, decision: Decision, words: dict[str, str]) -> None:
        """Record a refusal: what came stays or is loose, and the next option is up."""
        fallback, progress = self._lists.fallbacks[pool], self._lists.progress_by_pool[pool]
        option = decision.option.key if isinstance(decision, Attempt) else ""
        if isinstance(decision, Attempt) and "" not in words:
            self._bought(pool, decision)
            progress = self._lists.progress_by_pool[pool]
        lacking = frozenset(fallback.nodes) if "" in words else frozenset(words)
        option = option or next(
            (progress.held[n] for n in sorted(lacking) if n in progress.held), ""
        )
        kept, loose = (
            keep_or_release(fallback, progress, lacking)
            if isinstance(decision, Attempt)
            else ((), ())
        )
        if kept:
            self._record(pool, "held", option, kept)
        reason = "; ".join(dict.fromkeys(words.values()))
        self._record(pool, "refused", option, lacking, loose=loose, reason=reason)

    def _bought(self, pool: str, decision: Attempt) -> None:
        if decision.option.buy_hours is not None and not self._lists.progress_by_pool[pool].paid:
            self._record(pool, "bought", decision.option.key)

    def _end(self, decisions: dict[str, Decision]) -> list[Diagnostic]:
        """Record which lists ended short; return the findings."""
        found: list[Diagnostic] = []
        for pool, decision in decisions.items():
            progress = self._lists.progress_by_pool[pool]
            if isinstance(decision, Exhausted):
                self._skip(pool, decision)
                self._record(pool, "given-up", nodes=decision.missing, ends=True)
                found.append(
                    exhausted_error(
                        self._lists.fallbacks[pool],
                        self._lists.progress_by_pool[pool],
                        decision.missing,
                        spec=str(self._cluster.spec_path),
                    )
                )
            elif isinstance(decision, Complete) and (progress.tried or progress.fresh):
                self._record(pool, "held", ends=True)
        return found

    def _record(
        self,
        pool: str,
        outcome: str,
        option: str = "",
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
                "option": option,
                "outcome": outcome,
                "nodes": fold(sorted(nodes)) if nodes else "",
                "loose": fold(loose) if loose else "",
                "reason": reason,
                "ends": ends,
            },
            PurchaseAttempted,
        )
        event = self._cluster.events.append(step)
        self._lists.progress_by_pool[pool] = self._lists.progress_by_pool[pool].after(
            step, event.time
        )


def attempts_text(tried: Iterable[FailedAttempt]) -> str:
    """Return one line per option: what was tried, and the cloud's message."""
    return "\n".join(f"{step.option}: {step.outcome}: {step.reason}" for step in tried)


def exhausted_error(
    fallback: PoolFallback, progress: PurchaseProgress, missing: tuple[str, ...], *, spec: str
) -> Diagnostic:
    """Return the error for a pool whose fallback list ended before all its nodes were there."""
    there = len(fallback.nodes) - len(missing)
    enough = fallback.suffices(there)
    current = (
        f"{there} of {len(fallback.nodes)} nodes exist" if there else "none of it is left behind"
    )
    hint = f"go on later with: gcluster up {spec}"
    if not enough and not fallback.mixed and there:
        hint += (
            f"; or buy the whole pool again: gcluster up {spec} --from-first-option {fallback.pool}"
        )
    elif not enough:
        hint += "; or add an option to its market, or a zone"
    return Diagnostic(
        code="GC953",
        severity=Severity.WARNING if enough else Severity.ERROR,
        summary=f"pool {fallback.pool}: no option of its market has {fold(missing)}; {current}",
        detail=attempts_text(progress.last or progress.tried),
        path=("pools", fallback.pool),
        hint=hint,
    )


def later_option_note(fallback: PoolFallback, progress: PurchaseProgress) -> Diagnostic | None:
    """Return a note for a pool that was just bought on another option than the first."""
    options = sorted(set(progress.held.values()))
    if not progress.last or not options or options == [fallback.options[0].key]:
        return None
    return Diagnostic(
        code="GC954",
        severity=Severity.WARNING,
        summary=f"pool {fallback.pool} is bought on {', '.join(options)}, not on its first option",
        detail=attempts_text(progress.last),
        path=("pools", fallback.pool, "market"),
        hint="it stays there; --from-first-option POOL buys it again from the first",
    )


def purchase_unknown(pool: str, option: PurchaseOption) -> Diagnostic:
    """Return the error for a purchase that was killed: it is not made twice unasked."""
    return Diagnostic(
        code="GC955",
        severity=Severity.ERROR,
        summary=f"pool {pool}: buying its capacity block ({option.key}) was interrupted, and "
        "whether it was paid isn't known",
        path=("pools", pool, "market"),
        hint="look: aws ec2 describe-capacity-reservations; then resume with "
        f"--buy-capacity-block {pool}, which uses the block that is there and buys none twice",
    )
