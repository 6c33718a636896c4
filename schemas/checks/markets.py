"""How machines are bought: offered, said once, said clearly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..diagnostics import PathTuple, Severity
from ..mend.fix import Remove
from ..spec import Pool, Rung
from .context import CheckContext
from .registry import Finding, check

_KEYS = (
    "reservation",
    "capacity_block",
    "buy_capacity_block",
    "flex_start",
    "spot_max_usd_per_hour",
)

_WRITTEN = {
    "on-demand": "on-demand",
    "spot": "spot",
    "reservation": "{reservation: ID}",
    "capacity-block": "{capacity_block: ID}",
    "flex-start": "flex-start",
}

_SOLD = {
    "on-demand": "on demand",
    "spot": "as spot",
    "reservation": "by reservation",
    "capacity-block": "by capacity block",
    "flex-start": "by flex-start",
}


def rungs(context: CheckContext) -> Iterator[tuple[str, Pool, str | Rung, PathTuple]]:
    """Yield (pool name, pool, rung, place) for every rung of the pools of clouds."""
    for name, pool in context.pools.items():
        if pool.market and context.cloud(pool) is not None:
            for index, rung in enumerate(pool.market):
                yield name, pool, rung, ("pools", name, "market", index)


def market_of(rung: str | Rung) -> str:
    """Return the market that a rung buys in; "" when it doesn't say."""
    return rung.market if isinstance(rung, Rung) else rung


def given(rung: str | Rung) -> list[str]:
    """Return the keys that a rung gives."""
    return [] if isinstance(rung, str) else [key for key in _KEYS if getattr(rung, key) is not None]


def _markets(context: CheckContext, pool: Pool) -> tuple[str, Sequence[str]]:
    """Return (who sells, how) for a pool; nothing: not known."""
    machine, facts = context.machine(pool), context.facts(pool)
    if machine is not None and machine.markets is not None:
        return machine.name, machine.markets
    return ("", ()) if facts is None else (facts.name, facts.markets)


@check("GC124", summary="A market in which the machine type is not sold.")
def not_sold(context: CheckContext) -> Iterator[Finding]:
    """Not every machine type is sold in every way.

    Flex-start is Google's, capacity blocks are sold by AWS and (as future reservations) by Google,
    Azure reserves no ND machines, and the newest types are not sold on demand. A pool that names no
    market is bought on demand.
    """
    for name, pool in context.pools.items():
        who, sold = _markets(context, pool)
        if not sold or context.cloud(pool) is None or pool.market or "on-demand" in sold:
            continue
        yield Finding(
            summary=f'pool "{name}": {who} is not sold on demand, and the pool names no market',
            path=("pools", name, "machine"),
            hint=f"add market: [{_WRITTEN[sold[0]]}] or another of {_listed(sold)}",
            relies_on=tuple(("pools", name, key) for key in ("machine", "site", "market")),
        )
    for name, pool, rung, path in rungs(context):
        who, sold = _markets(context, pool)
        market = market_of(rung)
        if not sold or not market or market in sold or len(given(rung)) > 1:
            continue
        others = any(market_of(other) in sold for other in pool.market)
        yield Finding(
            summary=f'pool "{name}": {who} is not sold {_SOLD[market]}',
            path=path,
            hint=f"it is sold as {_listed(sold)}",
            fix=Remove(path) if others else None,
            relies_on=(path, ("pools", name, "machine"), ("pools", name, "site")),
        )


def _listed(sold: Sequence[str]) -> str:
    return ", ".join(_WRITTEN[market] for market in sold)


@check("GC125", summary="A rung of a market says nothing, or several things.")
def unclear_rung(context: CheckContext) -> Iterator[Finding]:
    """Each rung of `market` is one way to buy: a word, or a mapping with one key.

    Rungs are tried in order, so two ways are two rungs.
    """
    for name, _, rung, path in rungs(context):
        keys = given(rung)
        if not isinstance(rung, Rung) or len(keys) == 1:
            continue
        what = f"says {len(keys)} ways to buy: {', '.join(keys)}" if keys else "says no way to buy"
        yield Finding(
            summary=f'pool "{name}": a rung of market {what}',
            path=path,
            hint="write a rung for each: "
            + ", ".join(f"{{{key}: ...}}" for key in keys or _KEYS[:2]),
        )


@check("GC126", summary="A way to buy is given twice.")
def repeated_rung(context: CheckContext) -> Iterator[Finding]:
    """Rungs are tried in order, so the same one a second time is never reached."""
    seen: set[tuple[str, str | Rung]] = set()
    for name, _, rung, path in rungs(context):
        if (name, rung) in seen:
            yield Finding(
                summary=f'pool "{name}": this rung of market is there already',
                path=path,
                severity=Severity.WARNING,
                hint="keep the first",
                fix=Remove(path),
                relies_on=(("pools", name, "market"), ("pools", name, "site")),
            )
        seen.add((name, rung))
