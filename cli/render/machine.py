"""All about one machine type: each figure with its source and date, by number."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from ...schemas.catalog import Machine, Price, Quota
from ...schemas.catalog.figures import Figure, Value, figures, is_unverified
from ...schemas.catalog.selection import places
from .cells import pad, printable, width
from .surface import Surface

MARK = "*"
_UNITS = {
    "_gib": "GiB",
    "gbytes_per_s": "GB/s",
    "gbps": "Gb/s",
    "_gb": "GB",
    "_w": "W",
}
"""Units by how a field's name ends."""
_TOGETHER = ("prices.", "quotas.")
"""Figures that are told in one line for each element."""


_LONGEST_WORD = 40
"""A list without blanks that is longer gets some, so that it can be wrapped."""


def machine_text(machine: Machine, surface: Surface) -> str:
    """Return a machine type as text."""
    sources: dict[tuple[str, str], int] = {}
    rows = [
        (label, told, sources.setdefault((source, date), len(sources) + 1))
        for label, told, source, date in _rows(machine)
    ]
    left = max(width(label) for label, _, _ in rows)
    lines = [f"{surface.paint('strong', printable(machine.name))}   {_places(machine)}", ""]
    for label, told, number in rows:
        lines += _row(label, told, number, left, surface)
    lines += ["", *(_source(number, *key, surface) for key, number in sources.items())]
    if machine.note:
        lines += ["", *_wrapped(f"note: {printable(machine.note)}", "", "      ", surface)]
    if machine.unverified:
        lines += ["", surface.paint("faint", _ABOUT_MARK)]
    return surface.plain("\n".join(lines))


_ABOUT_MARK = f"{MARK} not confirmed: one source only, or sources differ"


def told(machine: Machine) -> dict[str, Any]:
    """Return a machine type for JSON: each figure with its path, source, date and mark."""
    return {
        "name": machine.name,
        "where": list(places(machine)),
        "simulated": machine.simulated,
        "note": machine.note,
        "figures": figures(machine),
    }


def _places(machine: Machine) -> str:
    return ", ".join(map(printable, places(machine)))


def _rows(machine: Machine) -> Iterator[tuple[str, str, str, str]]:
    """Yield label, value, source and date."""
    found = figures(machine)
    for figure in found:
        if not figure.path.startswith(_TOGETHER):
            text = _with_unit(figure.path, figure.value)
            yield figure.path, _marked(text, figure.unverified), figure.source, figure.date
    for number, price in enumerate(machine.prices):
        path = f"prices.{number}"
        yield path, _marked(_price(price), is_unverified(machine, path)), price.source, price.date
    for number, quota in enumerate(machine.quotas):
        path = f"quotas.{number}"
        source, date = _source_of(found, path)
        yield path, _marked(_quota(quota), is_unverified(machine, path)), source, date


def _source_of(found: tuple[Figure, ...], path: str) -> tuple[str, str]:
    figure = next(figure for figure in found if figure.path.startswith(f"{path}."))
    return figure.source, figure.date


def _marked(text: str, unverified: bool) -> str:
    return f"{text}{MARK}" if unverified else text


def _with_unit(path: str, value: Value) -> str:
    if isinstance(value, list):
        return ", ".join(map(printable, value))
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = next((unit for end, unit in _UNITS.items() if path.endswith(end)), "")
    return f"{value:,.10g} {unit}".rstrip()


def _price(price: Price) -> str:
    where = f" in {printable(price.region)}" if price.region else ""
    return f"${price.usd_per_hour:,.2f}/h {price.market}{where}"


def _quota(quota: Quota) -> str:
    unit = {"vcpu": "vCPU", "gpu": "GPU", "node": "node"}[quota.unit]
    plural = "s" if quota.per_node != 1 and unit != "vCPU" else ""
    markets = ", ".join(quota.markets)
    return f"{printable(quota.code)}: {quota.per_node} {unit}{plural} a node ({markets})"


def _row(label: str, told: str, number: int, left: int, surface: Surface) -> Iterator[str]:
    begin = f"  {pad(label, left)}  "
    if max(map(len, told.split()), default=0) > _LONGEST_WORD:
        told = told.replace(",", ", ")
    shown = _wrapped(f"{told} [{number}]", begin, " " * width(begin), surface)
    yield from shown


def _source(number: int, source: str, date: str, surface: Surface) -> str:
    begin = f"  [{number}] "
    text = f"{printable(source)}, {date}"
    return "\n".join(_wrapped(text, begin, " " * width(begin), surface))


def _wrapped(text: str, first: str, rest: str, surface: Surface) -> list[str]:
    return textwrap.wrap(
        text,
        width=max(40, min(surface.width, 100)),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=True,  # a path may be longer than the room beside its name
        break_on_hyphens=False,
    )
