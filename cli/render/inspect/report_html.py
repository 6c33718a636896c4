"""A report of GPU hours and waste as one HTML file: bars as SVG, no script and no network."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ....lifecycle.status.waste.report import DAY_S, Report, Slice
from ..page import page_template
from . import report as words

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_HEIGHT = 120
"""Of the highest bar."""


class Bar(msgspec.Struct, frozen=True):
    """One hour or day of the chart: three parts, one above the other, in units of the drawing."""

    used: float
    wasted: float
    unused: float
    title: str


def report_html(report: Report) -> str:
    """Return the whole document."""
    return page_template(_TEMPLATE).render(
        report=report,
        words=words,
        period=words.period(report),
        measured=words.measured(report),
        notes=list(words.notes(report)),
        lines=[words.cells(use) for use in words.uses_of(report)],
        bars=bars(report),
        use_bars=use_bars(report),
        height=_HEIGHT,
    )


def bars(report: Report) -> list[Bar]:
    """Return a bar for each hour or day that has costs."""
    most = max((_total(each) for each in report.slices), default=0.0)
    scale = _HEIGHT / most if most else 0.0
    return [
        Bar(
            used=(each.usd - each.wasted_usd) * scale,
            wasted=each.wasted_usd * scale,
            unused=each.unused_usd * scale,
            title=f"{_when(each, report.slice_s)}: ${each.wasted_usd:,.2f} wasted, "
            f"${each.unused_usd:,.2f} unused, ${each.usd - each.wasted_usd:,.2f} used",
        )
        for each in report.slices
    ]


def use_bars(report: Report) -> list[Bar]:
    """Return a bar for each hour or day: the share of what jobs held, in dollars, that was used.

    Without dollars there is no bar: how busy GPUs were isn't known, or nothing was held.
    """
    found = []
    for each in report.slices:
        share = 1 - each.wasted_usd / each.usd if each.usd else None
        text = "no GPU was held" if share is None else f"SM active {share:.0%}"
        title = f"{_when(each, report.slice_s)}: {text}"
        found.append(Bar(used=_HEIGHT * (share or 0.0), wasted=0.0, unused=0.0, title=title))
    return found


def _total(each: Slice) -> float:
    return each.usd + each.unused_usd


def _when(each: Slice, slice_s: int) -> str:
    shown = "%Y-%m-%d" if slice_s == DAY_S else "%Y-%m-%d %H:%M"
    return f"until {datetime.fromtimestamp(each.until, UTC).strftime(shown)}"
