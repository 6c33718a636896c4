"""How machines of a cloud are bought: spot, reservations and capacity blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...diagnostics import PathTuple, Severity
from ...spec import Option, Pool
from ...spec.units import Duration
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check
from .placement import zones_of_pool

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


def purchase_options(context: CheckContext) -> Iterator[tuple[str, Pool, str | Option, PathTuple]]:
    """Yield (pool name, pool, option, place) for every option of the pools of clouds."""
    for name, pool in context.pools.items():
        if pool.market and context.cloud(pool) is not None:
            for index, option in enumerate(pool.market):
                yield name, pool, option, ("pools", name, "market", index)


def market_of(option: str | Option) -> str:
    """Return the market that an option buys in; "" when it doesn't say."""
    return option.market if isinstance(option, Option) else option


def given(option: str | Option) -> list[str]:
    """Return the keys that an option gives."""
    return (
        []
        if isinstance(option, str)
        else [key for key in _KEYS if getattr(option, key) is not None]
    )


def _markets(context: CheckContext, pool: Pool) -> tuple[str, Sequence[str]]:
    """Return (who sells, how) for a pool; nothing: not known."""
    machine, facts = context.machine(pool), context.facts(pool)
    if machine is not None and machine.markets is not None:
        return machine.name, machine.markets
    return ("", ()) if facts is None else (facts.name, facts.markets)


@check("GC124", summary="A market in which the machine type is not sold.")
def market_not_offered(context: CheckContext) -> Iterator[Finding]:
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
    for name, pool, option, path in purchase_options(context):
        who, sold = _markets(context, pool)
        market = market_of(option)
        if not sold or not market or market in sold or len(given(option)) > 1:
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


@check("GC125", summary="An option of a market has no purchase type, or several.")
def purchase_option_ambiguous(context: CheckContext) -> Iterator[Finding]:
    """Each option of `market` is one way to buy: a word, or a mapping with one key.

    Options are tried in order, so two ways are two options.
    """
    for name, _, option, path in purchase_options(context):
        keys = given(option)
        if not isinstance(option, Option) or len(keys) == 1:
            continue
        what = (
            f"has {len(keys)} purchase types: {', '.join(keys)}" if keys else "has no purchase type"
        )
        yield Finding(
            summary=f'pool "{name}": an option of market {what}',
            path=path,
            hint="write an option for each: "
            + ", ".join(f"{{{key}: ...}}" for key in keys or _KEYS[:2]),
        )


@check("GC126", summary="A way to buy is given twice.")
def purchase_option_duplicate(context: CheckContext) -> Iterator[Finding]:
    """Options are tried in order, so the same one a second time is never reached."""
    seen: set[tuple[str, str | Option]] = set()
    for name, _, option, path in purchase_options(context):
        if (name, option) in seen:
            yield Finding(
                summary=f'pool "{name}": this option of market is there already',
                path=path,
                severity=Severity.WARNING,
                hint="keep the first",
                fix=Remove(path),
                relies_on=(("pools", name, "market"), ("pools", name, "site")),
            )
        seen.add((name, option))


_DAY = 86_400
_ZONE_IN_PATH = re.compile(r"(?:^|/)zones/([^/]+)/")


@check("GC448", summary="A controller, or a host that serves storage, is bought as spot capacity.")
def spot_for_services(context: CheckContext) -> Iterator[Finding]:
    """A cloud takes spot machines back at two minutes' notice, or less.

    A controller that goes takes the queue and all running jobs' accounting with it, and a host that
    serves /home stops every job that uses it. Buy them on demand: they are few and small.
    """
    for name, pool, option, path in purchase_options(context):
        serves = name in context.mounts.servers
        if market_of(option) != "spot" or not (pool.role == "controller" or serves):
            continue
        what = "runs the scheduler" if pool.role == "controller" else "serves storage"
        yield Finding(
            summary=f'pool "{name}" {what}, and a cloud takes spot machines back',
            path=path,
            hint="write market: [on-demand], or remove market",
            relies_on=(path, ("pools", name, "role"), ("storage",)),
        )


@check("GC128", summary="A pool is larger than one capacity block.")
def block_too_small(context: CheckContext) -> Iterator[Finding]:
    """A capacity block has at most so many machines (AWS: 64), and a pool is launched from one.

    Make a second pool with a block of its own. With `mixed: true` the rest may come from another
    option.
    """
    for name, pool, option, path in purchase_options(context):
        facts, size = context.facts(pool), context.size(name)
        if market_of(option) != "capacity-block" or facts is None or facts.capacity_block is None:
            continue
        most = facts.capacity_block.max_nodes
        if size is None or size <= most or (pool.mixed and len(pool.market) > 1):
            continue
        yield Finding(
            summary=f'pool "{name}": {size:,} nodes, but one capacity block has at most {most:,}',
            path=path,
            hint=f"at most count: {most}; make a second pool with a block of its own",
            relies_on=tuple(("pools", name, key) for key in ("market", "count", "site", "mixed")),
        )


@check("GC129", summary="A capacity block of a length that is not sold.")
def capacity_block_length(context: CheckContext) -> Iterator[Finding]:
    """Capacity blocks are sold for certain numbers of days; AWS: 1 to 14, then whole weeks.

    Only a provider whose terms the catalog knows sells them at the moment of `up`; elsewhere name
    one that you own, with `capacity_block`.
    """
    for name, pool, option, path in purchase_options(context):
        facts = context.facts(pool)
        if not isinstance(option, Option) or option.buy_capacity_block is None or facts is None:
            continue
        where = (*path, "buy_capacity_block")
        relies_on = (where, ("pools", name, "site"))
        if facts.capacity_block is None:
            if "capacity-block" in facts.markets:
                yield Finding(
                    summary=f'pool "{name}": gcluster can\'t buy a capacity block of {facts.name}',
                    path=where,
                    at_key=True,
                    hint="write capacity_block: ID with one that you own",
                    relies_on=relies_on,
                )
            continue
        days = option.buy_capacity_block.value / _DAY
        sold = facts.capacity_block.day_steps
        if sold and days not in sold:
            near = sorted(
                {max((d for d in sold if d < days), default=sold[0])}
                | {min((d for d in sold if d > days), default=sold[-1])}
            )
            yield Finding(
                summary=f'pool "{name}": no capacity block is sold for {option.buy_capacity_block}',
                path=where,
                hint=f"write {' or '.join(f'{day}d' for day in near)}",
                relies_on=relies_on,
            )


@check("GC140", summary="A capacity block would be bought, and its zone is not specified.")
def capacity_block_without_zone(context: CheckContext) -> Iterator[Finding]:
    """A capacity block is in one zone, is paid at once and can't be moved.

    On offer are blocks in all zones of a region. The right one is in the zone of the pool, where
    its subnet, its file system and the other pools of its fabric are: name it.
    """
    for name, pool, option, path in purchase_options(context):
        site, facts = context.cloud(pool), context.facts(pool)
        if not isinstance(option, Option) or option.buy_capacity_block is None or site is None:
            continue
        if facts is None or facts.capacity_block is None or zones_of_pool(context, name):
            continue
        yield Finding(
            summary=f'pool "{name}": the zone of its capacity block is not specified',
            path=(*path, "buy_capacity_block"),
            hint=f"write {site.zone_key} at the site, or zones: [ID] at the pool",
            relies_on=(
                (*path, "buy_capacity_block"),
                ("pools", name, "zones"),
                ("pools", name, "site"),
                ("sites", pool.site, site.zone_key),
            ),
        )


@check("GC130", summary="A capacity block would be bought, and its price is not given back.")
def capacity_block_not_refundable(context: CheckContext) -> Iterator[Finding]:
    """`buy_capacity_block` spends money that nothing brings back.

    The whole block is paid when it is bought, whether it is used or not, and `down` can't return
    it. `up` prompts for its name. To use a block that you own already, write `capacity_block: ID`.
    """
    for name, pool, option, path in purchase_options(context):
        facts = context.facts(pool)
        terms = None if facts is None else facts.capacity_block
        if not isinstance(option, Option) or option.buy_capacity_block is None or terms is None:
            continue
        days = option.buy_capacity_block.value / _DAY
        if not zones_of_pool(context, name):
            continue  # GC140
        if not terms.refundable and (not terms.day_steps or days in terms.day_steps):
            yield Finding(
                summary=f'pool "{name}": a capacity block of {option.buy_capacity_block} is paid '
                "at once and not refundable",
                path=(*path, "buy_capacity_block"),
                severity=Severity.WARNING,
                hint="`up` asks for confirmation before it buys; write capacity_block: ID to use "
                "one that you own",
                relies_on=((*path, "buy_capacity_block"), ("pools", name, "site")),
            )


@check("GC131", summary="A flex-start of a length that is not offered.")
def flex_start_length(context: CheckContext) -> Iterator[Finding]:
    """Flex-start machines run for a time within bounds; Google: 10 minutes to 7 days.

    Machines that must run longer are bought in another way.
    """
    for name, pool, option, path in purchase_options(context):
        facts = context.facts(pool)
        bounds = None if facts is None else facts.flex_start_seconds
        if not isinstance(option, Option) or option.flex_start is None or not bounds:
            continue
        least, most = min(bounds), max(bounds)
        if not least <= option.flex_start.value <= most:
            yield Finding(
                summary=f'pool "{name}": flex-start is for {Duration(least)} to {Duration(most)}, '
                f"not {option.flex_start}",
                path=(*path, "flex_start"),
                hint=f"write {Duration(most if option.flex_start.value > most else least)}",
                relies_on=((*path, "flex_start"), ("pools", name, "site")),
            )


@check("GC132", summary="A reservation is in one zone, the pool is not.")
def reservation_zone_mismatch(context: CheckContext) -> Iterator[Finding]:
    """Reserved capacity is in one zone, and so must be the pool that uses it.

    An id that names its zone (zones/us-central1-a/reservations/r) must name the pool's. Of other
    ids only the cloud knows the zone: with several zones in the pool all but one will find nothing.
    """
    for name, pool, option, path in purchase_options(context):
        if not isinstance(option, Option) or len(given(option)) != 1:
            continue
        identifier = option.reservation or option.capacity_block
        zones = list(dict.fromkeys(zone for zone, _ in zones_of_pool(context, name)))
        if identifier is None or not zones:
            continue
        match = _ZONE_IN_PATH.search(identifier)
        relies_on = (
            path,
            *(("pools", name, key) for key in ("zones", "site")),
            ("sites", pool.site),
        )
        if match and match[1] not in zones:
            yield Finding(
                summary=f'pool "{name}": the reservation is in {match[1]}, the pool in '
                f"{', '.join(zones)}",
                path=path,
                hint=f"write zones: [{match[1]}]",
                relies_on=relies_on,
            )
        elif len(zones) > 1:
            yield Finding(
                summary=f'pool "{name}": reserved capacity is in one zone, the pool names '
                f"{len(zones)}",
                path=path,
                severity=Severity.WARNING,
                hint=f"write zones: [{match[1] if match else zones[0]}], the zone of the "
                "reservation",
                relies_on=relies_on,
            )
