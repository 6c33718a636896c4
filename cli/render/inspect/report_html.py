"""A report of GPU hours and waste as one HTML file: bars as SVG, no script and no network."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ....lifecycle.status.waste.report import DAY_S, Report, Slice, Use
from . import report as words

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
    return _template().render(
        report=report,
        words=words,
        period=words.period(report),
        measured=words.measured(report),
        notes=list(words.notes(report)),
        lines=[
            words.cells(use) for account in report.accounts for use in _of(report, account.account)
        ],
        bars=bars(report),
        height=_HEIGHT,
    )


def _of(report: Report, account: str) -> list[Use]:
    own = [use for use in report.accounts if use.account == account]
    return [*own, *(use for use in report.users if use.account == account)]


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


def _total(each: Slice) -> float:
    return each.usd + each.unused_usd


def _when(each: Slice, slice_s: int) -> str:
    shown = "%Y-%m-%d" if slice_s == DAY_S else "%Y-%m-%d %H:%M"
    return f"until {datetime.fromtimestamp(each.until, UTC).strftime(shown)}"


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
