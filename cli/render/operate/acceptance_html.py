"""The report of an acceptance as one HTML file: heat maps as SVG, no script and no network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....lifecycle.operations.acceptance.judge import MetricSummary, Series, TestSummary
from ....lifecycle.operations.acceptance.report import Report
from ..page import page_template

_TEMPLATE = Path(__file__).with_name("acceptance.html.j2")
MOST_CELLS = 128
"""Nodes up to which each has a row of its own in a matrix; of more, neighbours share one."""
_SHARE = 0.3
"""Share of the median from which on a cell has the deepest colour (`statistics.SLOW`)."""


class Cell(msgspec.Struct, frozen=True):
    """One field of a heat map."""

    x: int
    y: int
    tone: str
    """0 the median, good or bad in steps to 4, none: no figure."""
    title: str
    node: str = ""


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix of figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[Cell, ...]


def acceptance_html(report: Report, sha256: str) -> str:
    """Return the whole document."""
    return page_template(_TEMPLATE).render(
        report=report, sha256=sha256, maps=heat_maps(report), figure=_figure, percent=_percent
    )


def heat_maps(report: Report) -> tuple[HeatMap, ...]:
    """Return a map of all figures of nodes, and one for each figure of pairs."""
    maps = []
    columns = [
        (test, metric)
        for test in report.tests
        for metric in test.metrics
        if any(one.target in _nodes(report) for one in metric.series)
    ]
    if columns:
        maps.append(_of_nodes(report, columns))
    for test in report.tests:
        for metric in test.metrics:
            ends = _nodes(report)
            pairs = [one for one in metric.series if set(one.part.split()[:2]) <= ends and one.part]
            if pairs:
                maps.append(_of_pairs(test, metric, pairs))
    return tuple(maps)


def _nodes(report: Report) -> frozenset[str]:
    return frozenset(certificate.node for certificate in report.certificates)


def _of_nodes(report: Report, columns: Sequence[tuple[TestSummary, MetricSummary]]) -> HeatMap:
    names = [c.node for c in report.certificates if c.verdict != "excluded"]
    cells = []
    for x, (test, metric) in enumerate(columns):
        by_node: defaultdict[str, list[Series]] = defaultdict(list)
        for one in metric.series:
            by_node[one.target].append(one)
        for y, name in enumerate(names):
            if mine := by_node.get(name):
                worst = min(mine, key=lambda one: _merit(one.value, metric))
                cells.append(_cell(x, y, worst, metric, f"{name} {test.name}", name))
    return HeatMap(
        title="Nodes and figures, each with its peers",
        columns=tuple(f"{test.name}: {metric.metric}" for test, metric in columns),
        rows=tuple(names),
        cells=tuple(cells),
    )


def _of_pairs(test: TestSummary, metric: MetricSummary, pairs: Sequence[Series]) -> HeatMap:
    names = list(dict.fromkeys(name for one in pairs for name in one.part.split()[:2]))
    names.sort()
    per_row = -(-len(names) // MOST_CELLS)
    groups = [names[at : at + per_row] for at in range(0, len(names), per_row)]
    place = {name: at for at, group in enumerate(groups) for name in group}
    found: defaultdict[tuple[int, int], list[Series]] = defaultdict(list)
    for one in pairs:
        a, b = (place[name] for name in one.part.split()[:2])
        found[a, b].append(one)
        if a != b or per_row == 1:
            found[b, a].append(one)
    labels = [group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups]
    cells = []
    for (x, y), several in found.items():
        worst = min(several, key=lambda one: _merit(one.value, metric))
        what = f"{labels[y]} and {labels[x]}"
        cells.append(_cell(x, y, worst, metric, what))
    return HeatMap(
        title=f"{test.title}: {metric.metric} ({metric.unit})",
        columns=tuple(labels),
        rows=tuple(labels),
        cells=tuple(cells),
    )


def _cell(  # noqa: PLR0917  # where it is and what it says
    x: int, y: int, one: Series, metric: MetricSummary, what: str, node: str = ""
) -> Cell:
    middle = metric.summary.median
    share = _merit(one.value, metric) / abs(middle) if middle else 0.0
    share -= _merit(middle, metric) / abs(middle) if middle else 0.0
    step = min(4, round(abs(share) / _SHARE * 4))
    tone = "0" if step == 0 else f"{'good' if share > 0 else 'bad'}{step}"
    title = f"{what}: {_figure(one.value)} {metric.unit} ({share:+.0%} of the median)"
    return Cell(x, y, tone, title, node)


def _merit(value: float, metric: MetricSummary) -> float:
    """Return a figure so that more is better."""
    return value if metric.better == "higher" else -value


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"  # noqa: PLR2004  # no exponent


def _percent(value: float) -> str:
    return f"{value:.0%}"
