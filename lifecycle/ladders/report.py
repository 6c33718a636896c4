"""What is said about a ladder that was walked: where a pool stands, and what was tried before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic, Severity
from ...stacks.provider import PurchaseOption

if TYPE_CHECKING:
    from ..state.rungs import Tried, Walk
    from .rung import PoolLadder


def told(tried: Iterable[Tried]) -> str:
    """Return one line a rung: what was tried, and the cloud's own words."""
    return "\n".join(f"{step.rung}: {step.outcome}: {step.reason}" for step in tried)


def ended_short(
    ladder: PoolLadder, walk: Walk, missing: tuple[str, ...], *, spec: str
) -> Diagnostic:
    """Return the error for a pool whose ladder ended before all its nodes were there."""
    there = len(ladder.nodes) - len(missing)
    enough = ladder.suffices(there)
    stands = f"{there} of {len(ladder.nodes)} nodes stand" if there else "none of it is left behind"
    hint = f"go on later with: gcluster up {spec}"
    if not enough and not ladder.mixed and there:
        hint += f"; or buy the whole pool anew: gcluster up {spec} --first-rung {ladder.pool}"
    elif not enough:
        hint += "; or add a rung to its market, or a zone"
    return Diagnostic(
        code="GC953",
        severity=Severity.WARNING if enough else Severity.ERROR,
        summary=f"pool {ladder.pool}: no rung of its market has {fold(missing)}; {stands}",
        detail=told(walk.last or walk.tried),
        path=("pools", ladder.pool),
        hint=hint,
    )


def on_a_later_rung(ladder: PoolLadder, walk: Walk) -> Diagnostic | None:
    """Return a note for a pool that was just bought on another rung than the first."""
    rungs = sorted(set(walk.standing.values()))
    if not walk.last or not rungs or rungs == [ladder.rungs[0].key]:
        return None
    return Diagnostic(
        code="GC954",
        severity=Severity.WARNING,
        summary=f"pool {ladder.pool} is bought on {', '.join(rungs)}, not on its first rung",
        detail=told(walk.last),
        path=("pools", ladder.pool, "market"),
        hint="it stays there; --first-rung POOL buys it anew from the first",
    )


def purchase_unknown(pool: str, rung: PurchaseOption) -> Diagnostic:
    """Return the error for a purchase that was killed: it is not made twice unasked."""
    return Diagnostic(
        code="GC955",
        severity=Severity.ERROR,
        summary=f"pool {pool}: buying its capacity block ({rung.key}) was interrupted, and "
        "whether it was paid isn't known",
        path=("pools", pool, "market"),
        hint="look: aws ec2 describe-capacity-reservations; then go on with "
        f"--buy-capacity-block {pool}, which uses the block that is there and buys none twice",
    )
