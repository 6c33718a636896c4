"""A report of GPU hours and waste as text, CSV and Markdown; report_html.py has the page."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import StringIO

from ....lifecycle.status.waste.report import DAY_S, PoolUse, Report, Use
from ...console import Console, printable
from ..quantities import duration
from ..table import Column, tabulate
from .top import SIMULATED, UNKNOWN, money, percent

TITLES = (
    "account",
    "user",
    "jobs",
    "GPU hours",
    "SM",
    "tensor",
    "idle h",
    "untouched h",
    "$",
    "wasted $",
    "wait",
    "goodput",
)
_COLUMNS = (
    Column(TITLES[0], right=False, least=8),
    Column(TITLES[1], right=False, least=6, may_go=7),
    *(Column(title, may_go=go) for title, go in zip(TITLES[2:8], (3, 0, 0, 2, 4, 5), strict=True)),
    Column(TITLES[8]),
    Column(TITLES[9]),
    Column(TITLES[10], may_go=1),
    Column(TITLES[11], may_go=6),
)
POOL_TITLES = (
    "pool",
    "$",
    "held $",
    "wasted $",
    "idle $",
    "reserved $",
    "drained $",
    "down $",
    "failures",
    "MTBF h",
)
_UNUSED = ("idle", "reserved", "drained", "down")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for a formula's beginning (OWASP, CSV injection)."""


def report_text(report: Report, console: Console) -> str:
    """Return the report for a terminal."""
    lines = [
        console.paint("strong", f"{printable(report.cluster)}   {period(report)}"),
        *(measured(report) and [measured(report)]),
        "",
    ]
    uses = [*uses_of(report)]
    if uses:
        lines += tabulate(_COLUMNS, [cells(use) for use in uses], console).lines
    else:
        lines += ["no job held GPUs"]
    if report.pools:
        columns = [Column(title, right=at > 0) for at, title in enumerate(POOL_TITLES)]
        lines += [
            "",
            *tabulate(columns, [pool_cells(pool) for pool in report.pools], console).lines,
        ]
    lines += ["", *map(printable, notes(report))]
    lines += [f"dashboards: {printable(report.link)}"] if report.link else []
    return console.plain("\n".join(lines))


def uses_of(report: Report) -> Iterator[Use]:
    """Yield each account and below it its users."""
    for account in report.accounts:
        yield account
        yield from (user for user in report.users if user.account == account.account)


def period(report: Report) -> str:
    """Return "2026-11-01 10:00 to 2026-11-08 10:00 UTC"."""
    since, until = (
        datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
        for at in (report.since, report.until)
    )
    return f"{since} to {until} UTC"


def measured(report: Report) -> str:
    """Return how much of the time there are metrics of; "" where it is all of it."""
    requested = report.until - report.since
    if report.measured_s > requested * 0.98:
        return ""
    return (
        f"metrics of {duration(report.measured_s)} of the {duration(requested)}: "
        "Prometheus keeps no more, or didn't run"
    )


def notes(report: Report) -> Iterator[str]:
    """Yield what the figures mean and lack."""
    if report.simulated:
        yield SIMULATED
    yield (
        "wasted: price of GPUs that jobs held, times the share of the time that no SM was active; "
        "? is not known"
    )
    if any(use.goodput is not None for use in report.accounts):
        yield (
            "goodput: GPU hours of jobs that completed, of all that ended; "
            "work saved in checkpoints isn't known"
        )
    yield from report.notes


def cells(use: Use) -> list[str]:
    """Return a line of accounts and users, in the order of `TITLES`."""
    return [
        printable(use.account) if not use.user else "",
        printable(use.user),
        str(use.jobs),
        f"{use.gpu_hours:,.1f}",
        percent(use.active),
        percent(use.tensor),
        UNKNOWN if use.idle_gpu_hours is None else f"{use.idle_gpu_hours:,.1f}",
        UNKNOWN if use.untouched_gpu_hours is None else f"{use.untouched_gpu_hours:,.1f}",
        money(use.usd),
        money(use.wasted_usd),
        UNKNOWN if use.wait_median_s is None else duration(use.wait_median_s),
        percent(use.goodput) if not use.user else "",
    ]


def pool_cells(pool: PoolUse) -> list[str]:
    """Return a line of pools, in the order of `POOL_TITLES`."""
    return [
        printable(pool.pool),
        money(pool.usd),
        money(pool.held_usd),
        money(pool.wasted_usd),
        *(
            UNKNOWN if pool.usd is None else money(pool.unused_usd.get(state, 0.0))
            for state in _UNUSED
        ),
        UNKNOWN if pool.failures is None else f"{pool.failures:,}",
        _mtbf(pool),
    ]


def _mtbf(pool: PoolUse) -> str:
    """Return node hours between failures; of none, that it is more than all of them."""
    if pool.failures is None or pool.node_hours is None:
        return UNKNOWN
    if pool.mtbf_hours is None:
        return f"> {pool.node_hours:,.1f}"
    return f"{pool.mtbf_hours:,.1f}"


def report_csv(report: Report) -> str:
    """Return a line for each user of each account, numbers in full, nothing where unknown."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    names = [name for name in Use.__struct_fields__ if name != "goodput"]
    writer.writerow(["cluster", "since", "until", *names])
    since, until = (
        datetime.fromtimestamp(at, UTC).isoformat() for at in (report.since, report.until)
    )
    for use in report.users:
        values = [getattr(use, name) for name in names]
        writer.writerow(
            [_cell(report.cluster), since, until, *("" if v is None else _cell(v) for v in values)]
        )
    return stream.getvalue()


def _cell(value: str | float) -> str | float:
    """Return a value that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def report_markdown(report: Report) -> str:
    """Return the report for a ticket or a wiki."""
    lines = [f"# GPU use of {_escaped(report.cluster)}", "", period(report), ""]
    if measured(report):
        lines += [measured(report), ""]
    if report.accounts:
        lines += _markdown(TITLES, [cells(use) for use in uses_of(report)], left=2)
    if report.pools:
        lines += ["", *_markdown(POOL_TITLES, [pool_cells(pool) for pool in report.pools], left=1)]
    lines += ["", *(f"- {_escaped(note)}" for note in notes(report))]
    lines += [f"- dashboards: {_escaped(report.link)}"] if report.link else []
    return "\n".join(lines)


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    marks = ["---" if at < left else "---:" for at in range(len(titles))]
    return [
        f"| {' | '.join(cells)} |"
        for cells in (titles, marks, *([_escaped(cell) for cell in row] for row in rows))
    ]


def _escaped(text: str) -> str:
    """Return a text that is no markup: neither HTML nor Markdown's."""
    shown = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{sign}" if sign in "\\`*_[]|#!~" else sign for sign in shown)


def days(report: Report) -> str:
    """Return what a slice is called."""
    return "day" if report.slice_s == DAY_S else "hour"
