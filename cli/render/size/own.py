"""The answer of `gcluster size own` as text: what owning costs, renting, and what moves it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....schemas.cost.ownership import Influence, Input, Mixed, NodePrice, Owned, Refused, Rented
from ...console import Console, printable, wrap
from ..table import Column, tabulate
from .train import UNKNOWN

_WIDTH = 100
_BAR = 24
_MOST_INFLUENCES = 8
_CENTS_COUNT = 1000.0
_OWN = (Column("OWN", right=False), Column("USD"), Column("$/GPU-h"))
_RENT = (
    Column("RENT", right=False),
    Column("$/h"),
    Column("NODES", may_go=1),
    Column("USD"),
    Column("$/GPU-h"),
    Column("OWN ABOVE"),
    Column("PAID BACK"),
)
_MOVES = (
    Column("WHAT MOVES IT", right=False),
    Column("FROM"),
    Column("TO"),
    Column("$/GPU-h"),
    Column("", right=False, may_go=1),
)


class OwnershipAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All of an answer."""

    machine: str
    nodes: int
    gpus: int
    values: dict[str, float]
    """Input -> the value that counts."""
    given: list[str]
    """Inputs that the user gave."""
    owned: Owned
    owned_usd_per_gpu_hour: float
    """For an hour in which a GPU works."""
    rent: str
    """Machine type that is rented; "": none was named."""
    region: str | None
    rented: list[Rented]
    without_price: list[str]
    """Ways to rent it whose price isn't known."""
    other_gpus: str | None
    """GPUs of the rented machine where they are others."""
    influences: list[Influence]
    mixed: Mixed | None
    """For the load of a trace."""
    price: NodePrice | None
    """Where the node's price is from; None: given."""
    inputs: list[Input]
    explain: bool = False
    refused: list[Refused] = []
    """Ways that break a constraint."""
    over_use: dict[str, list[tuple[float, float]]] = {}
    """Way -> use and USD over the years."""
    over_time: dict[str, list[tuple[float, float]]] = {}
    """Way -> months and USD paid until then."""


def ownership_text(answer: OwnershipAnswer, console: Console) -> str:
    """Return the answer for people."""
    hours = answer.gpus * answer.values["years"] * 8760 * answer.values["use"]
    items = [
        [name, _usd(usd), f"{usd / hours:.2f}"] for name, usd in answer.owned.items.items() if usd
    ]
    items.append(["together", _usd(answer.owned.total), f"{answer.owned_usd_per_gpu_hour:.2f}"])
    lines = [*_folded(headline(answer), console), "", *_table(_OWN, items, console)]
    if answer.rented:
        rows = [
            [
                each.option,
                f"{each.usd_per_hour:,.2f}",
                f"{each.nodes:,}",
                _usd(each.total),
                f"{each.usd_per_gpu_hour:.2f}",
                UNKNOWN if each.break_even_use is None else f"{each.break_even_use:.0%} use",
                UNKNOWN if each.payback_months is None else f"{each.payback_months:.0f} months",
            ]
            for each in answer.rented
        ]
        lines += ["", *_table(_RENT, rows, console)]
    shown = answer.influences if answer.explain else answer.influences[:_MOST_INFLUENCES]
    lines += ["", *_table(_MOVES, [_influence(each, answer, console) for each in shown], console)]
    lines.append("")
    for note in notes(answer):
        lines += _folded(note, console)
    text = console.plain("\n".join(lines))
    return text if console.unicode else text.replace(UNKNOWN, "-")


def headline(answer: OwnershipAnswer) -> str:
    """Return what is compared."""
    values = answer.values
    where = f" in {printable(answer.region)}" if answer.region else ""
    rent = f"; rented: {printable(answer.rent)}{where}" if answer.rent else ""
    return (
        f"{answer.nodes:,} x {printable(answer.machine)}, {answer.gpus:,} GPUs at "
        f"${values['node_price']:,.0f} a node, {values['years']:g} years, working "
        f"{values['use']:.0%} of the time{rent}"
    )


def _table(columns: tuple[Column, ...], rows: list[list[str]], console: Console) -> list[str]:
    found = tabulate(columns, rows, console).lines
    return [console.paint("strong", found[0]), *found[1:]]


def _influence(each: Influence, answer: OwnershipAnswer, console: Console) -> list[str]:
    strongest = answer.influences[0]
    most = max(abs(strongest.usd_at_low), abs(strongest.usd_at_high))
    low, high = sorted((each.usd_at_low, each.usd_at_high))
    mark = "█" if console.unicode else "#"
    bar = mark * max(1, round((high - low) / (2 * most) * _BAR))
    unit = next((known.unit for known in answer.inputs if known.name == each.name), "USD")
    return [
        each.name,
        shown_value(each.low, unit),
        shown_value(each.high, unit),
        f"{each.usd_at_low:+.2f} {each.usd_at_high:+.2f}",
        bar,
    ]


def shown_value(value: float, unit: str) -> str:
    """Return an input's value with its unit."""
    if unit == "share":
        return f"{value:.0%}"
    if unit != "USD":
        return f"{value:g} {unit}"
    return f"${value:,.4g}" if value < _CENTS_COUNT else f"${value:,.0f}"


def notes(answer: OwnershipAnswer) -> Iterator[str]:
    """Yield what is to be known of the figures."""
    mixed = answer.mixed
    if mixed is not None:
        yield (
            f"for the load of the trace, {mixed.peak:,} nodes at its peak: own {mixed.owned:,} and "
            f"rent the rest on demand, {_usd(mixed.total)}; all owned {_usd(mixed.all_owned)}, all "
            f"rented {_usd(mixed.all_rented)}"
        )
    yield (
        "$/GPU-h is for an hour in which a GPU works. OWN ABOVE: the use from which owning costs "
        "less. PAID BACK: when the rent that was saved has paid the purchase, without interest and "
        "residual value"
    )
    if answer.other_gpus is not None:
        yield (
            f"{printable(answer.rent)} has {answer.other_gpus}: hours of other GPUs are compared "
            "as if they did the same"
        )
    if answer.without_price:
        options = " or ".join(answer.without_price)
        yield (
            f"no price is known of {printable(answer.rent)} as {options}: "
            f"--rent-price {answer.without_price[0]}=USD"
        )
    for left in answer.refused:
        yield f"left out: {left.option}: {left.reason}"
    yield (
        f"owned nodes work about {answer.values['lead_weeks']:g} weeks after the order, rented "
        "ones when the region has some"
    )
    if answer.price is not None:
        yield f"a node's price: {answer.price.source} ({answer.price.date})"
    ours = [each for each in answer.inputs if each.name not in answer.given]
    assumed = [each.name for each in ours if each.assumption]
    if assumed:
        yield f"assumed, no source says them: {', '.join(assumed)}. Give yours: --set NAME=VALUE"
    if answer.explain:
        for each in answer.inputs:
            source = f": {each.source} ({each.date})" if each in ours else " (given)"
            value = shown_value(answer.values[each.name], each.unit)
            yield f"{each.name} {value} - {each.what}{source}"


def _usd(usd: float) -> str:
    return f"-${-usd:,.0f}" if usd < 0 else f"${usd:,.0f}"


def _folded(text: str, console: Console) -> list[str]:
    return wrap(text, min(console.width, _WIDTH), rest="  ")
