"""The answer of `gcluster size own` as a report: costs, break-even, horizon, what moves it."""

from __future__ import annotations

from .own import OwnershipAnswer, headline, notes, shown_value
from .page import Page, Part
from .plots import Cells, Curves, Swing, Tornado

_MOST = 14
"""Inputs of the plot; all are in the table."""


def own_page(answer: OwnershipAnswer) -> Page:
    """Return the report."""
    hours = answer.gpus * answer.values["years"] * 8760 * answer.values["use"]
    items = [
        [name, _usd(usd), f"${usd / hours:.2f}"] for name, usd in answer.owned.items.items() if usd
    ]
    items.append(["together", _usd(answer.owned.total), f"${answer.owned_usd_per_gpu_hour:.2f}"])
    parts = [Part(title="Own", cells=Cells(["", "USD", "USD a GPU hour"], items))]
    if answer.rented:
        rows = [
            [
                each.option,
                f"${each.usd_per_hour:,.2f}",
                f"{each.nodes:,}",
                _usd(each.total),
                f"${each.usd_per_gpu_hour:.2f}",
                "–" if each.break_even_use is None else f"{each.break_even_use:.0%}",  # noqa: RUF001
                "–" if each.payback_months is None else f"{each.payback_months:.0f} months",  # noqa: RUF001
            ]
            for each in answer.rented
        ]
        titles = ["", "USD/h", "nodes", "USD", "USD a GPU hour", "own above use", "paid back"]
        parts.append(Part(title="Rent", cells=Cells(titles, rows)))
    if answer.refused:
        rows = [[each.option, each.reason] for each in answer.refused]
        cells = Cells(["option", "why not"], rows, (1,))
        parts.append(Part(title="Options that break a constraint", cells=cells))
    if len(answer.over_use) > 1:
        parts.append(Part(title="Break-even", plot=_curves(answer.over_use, "use")))
        parts.append(Part(title="Horizon", plot=_curves(answer.over_time, "months")))
    parts.append(Part(title="What moves it", plot=_tornado(answer)))
    rows = [
        [
            each.name,
            shown_value(answer.values[each.name], each.unit),
            each.what,
            "given" if each.name in answer.given else f"{each.source} ({each.date})",
        ]
        for each in answer.inputs
    ]
    parts.append(
        Part(title="Inputs", cells=Cells(["input", "value", "what", "source"], rows, (2, 3)))
    )
    title = f"Own or rent: {answer.nodes:,} x {answer.machine}"
    return Page(title=title, about=headline(answer), parts=parts, notes=[*notes(answer)])


def _curves(series: dict[str, list[tuple[float, float]]], x_name: str) -> Curves:
    share = x_name == "use"
    return Curves(
        label="USD to own and to rent",
        x_name="share of the time at work" if share else x_name,
        y_name="USD over the years" if share else "USD paid until then",
        series=[*series.items()],
        show_x=(lambda value: f"{value:.0%}") if share else (lambda value: f"{value:.0f}"),
        show_y=_short,
    )


def _tornado(answer: OwnershipAnswer) -> Tornado:
    units = {each.name: each.unit for each in answer.inputs}
    return Tornado(
        label="USD a GPU hour by which each input moves the difference of owning and renting",
        result="USD a GPU hour",
        swings=[
            Swing(
                name=each.name,
                low=shown_value(each.low, units.get(each.name, "USD")),
                high=shown_value(each.high, units.get(each.name, "USD")),
                at_low=each.usd_at_low,
                at_high=each.usd_at_high,
            )
            for each in answer.influences[:_MOST]
        ],
        show=lambda value: f"{value:+.2f}",
    )


def _usd(usd: float) -> str:
    return f"-${-usd:,.0f}" if usd < 0 else f"${usd:,.0f}"


def _short(usd: float) -> str:
    for unit, factor in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(usd) >= factor:
            return f"${usd / factor:.3g}{unit}"
    return f"${usd:.0f}"
