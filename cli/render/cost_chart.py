"""What pools cost as bars: what runs now, and the worst case behind it."""

from __future__ import annotations

from ...schemas.cost.bill import Bill, PoolBill
from .cells import pad, printable, width
from .cost_figures import pool_money
from .surface import Surface

NOW, MOST = "█", "░"
_LEAST = 8
"""Columns that a bar has at least, however narrow the terminal."""
_NAME = 24
"""Most columns of a pool's name beside its bar; longer ones stand above it."""


def chart(bill: Bill, surface: Surface) -> list[str]:
    """Return a line of bar and figures for each pool, and what the bars mean."""
    dearest = max((pool.usd_per_hour or 0.0 for pool in bill.pools), default=0.0)
    figures = {pool.name: _figures(pool) for pool in bill.pools}
    right = max((width(text) for text in figures.values()), default=0)
    left = min(_NAME, max((width(printable(pool.name)) for pool in bill.pools), default=0))
    room = max(_LEAST, surface.width - left - right - 4)
    lines: list[str] = []
    for pool in bill.pools:
        name = printable(pool.name)
        if width(name) > left:
            lines.append(name)
            name = ""
        drawn = _bar(pool, dearest, room, surface)
        lines.append(f"{pad(name, left)}  {drawn}  {figures[pool.name]}")
    if not dearest:
        return lines
    scale = f"{NOW} now, {MOST} worst case; the longest: ${dearest:,.2f}/h"
    return [*lines, "", surface.paint("faint", scale)]


def _bar(pool: PoolBill, dearest: float, room: int, surface: Surface) -> str:
    """Draw a bar as long as its share of the dearest; what costs anything has a cell at least."""
    now = _cells(pool.usd_per_hour_now, dearest, room)
    most = max(now, _cells(pool.usd_per_hour, dearest, room))
    drawn = surface.paint("good", NOW * now) + surface.paint("warning", MOST * (most - now))
    return drawn + " " * (room - most)


def _cells(value: float | None, dearest: float, room: int) -> int:
    if not value or not dearest:
        return 0
    return min(room, max(1, round(value / dearest * room)))


def _figures(pool: PoolBill) -> str:
    now = pool_money(pool, pool.usd_per_hour_now, is_bound=pool.is_bound_now)
    most = pool_money(pool, pool.usd_per_hour, is_bound=pool.is_bound)
    return now if now == most else f"{now} .. {most}"
