"""Machine types: the list, in as many columns as fit, and the page of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ....schemas.catalog import Machine, Price, Quota
from ....schemas.catalog.figures import Figure, Value, figures, is_unverified
from ....schemas.catalog.model.family import Family
from ....schemas.catalog.selection import MachineFilter, Offer, places, short_fabric, short_place
from ...console import Console, pad, printable, width, wrap
from ..table import Column, tabulate

UNKNOWN = "–"  # noqa: RUF001  # the dash of tables; turned into "-" where there is no Unicode
MARK = "*"
"""Behind a figure that is not confirmed."""
MARKETS = {
    "on-demand": "o",
    "spot": "s",
    "reservation": "r",
    "capacity-block": "c",
    "flex-start": "f",
}
"""Letters of the markets."""
_TERA = 1000


class _Column(NamedTuple):
    title: str
    cell: Callable[[Offer], str | None]
    """What it shows; None: not known."""
    path: str = ""
    """Figure of the machine type whose mark it carries."""
    right: bool = True
    may_go: int = 0
    """Left out first where there is no room: the highest."""

    @property
    def column(self) -> Column:
        """How it is laid out."""
        return Column(self.title, right=self.right, may_go=self.may_go)


def table(offers: list[Offer], wanted: MachineFilter, console: Console) -> str:
    """Return the machine types as a table, with a legend of what it shows."""
    if not offers:
        return "no machine type of the catalog fits"
    cells = [[_cell(column, offer) for column in _COLUMNS] for offer in offers]
    columns = [Column("NAME", right=False, least=18), *(column.column for column in _COLUMNS)]
    rows = [[printable(offer.machine.name), *row] for offer, row in zip(offers, cells, strict=True)]
    found = tabulate(columns, rows, console, gap=1)
    lines = [console.paint("strong", found.lines[0]), *found.lines[1:]]
    shown = "\n".join(cell for row in cells for cell in row)
    legend = [console.paint("faint", text) for text in _legend(wanted, found.dropped, shown)]
    text = "\n".join([*lines, "", *legend])
    return console.plain(text if console.unicode else text.replace(UNKNOWN, "-"))


def listed(offer: Offer) -> dict[str, Any]:
    """Return an offer for JSON: the table's columns, null where a figure isn't known."""
    machine, gpu, link = offer.machine, offer.machine.gpu, offer.machine.nvlink
    return {
        "name": machine.name,
        "where": offer.where,
        "simulated": machine.simulated,
        "gpu": gpu.model if gpu else None,
        "gpus": gpu.count if gpu else 0,
        "gpu_memory_gib": gpu.memory_gib if gpu else None,
        "vcpus": _threads(offer),
        "memory_gib": machine.memory_gib,
        "nvlink_domain_gpus": link.domain_gpus if link else None,
        "fabric": machine.fabric,
        "fabric_gbps": offer.fabric_gbps,
        "nvme_gb": machine.nvme_gb,
        "usd_per_hour": offer.price.usd_per_hour if offer.price else None,
        "usd_per_gpu_hour": offer.usd_per_gpu_hour,
        "price": _price_json(offer.price),
        "markets": machine.markets,
        "unverified": machine.unverified,
    }


def _price_json(price: Price | None) -> dict[str, Any] | None:
    return (
        None if price is None else {name: getattr(price, name) for name in price.__struct_fields__}
    )


def families_text(families: list[Family], console: Console) -> str:
    """Return the families of CPU machines by place, and how a size of one is written."""
    by_place: dict[str, list[str]] = {}
    for family in families:
        by_place.setdefault(family.sites[0], []).append(printable(family.name))
    left = max(map(width, by_place))
    lines = ["", console.paint("strong", "CPU machines by family: any size is a machine type")]
    for place, names in by_place.items():
        begin = f"  {pad(place, left)}  "
        lines += _wrapped(", ".join(names), begin, " " * width(begin), console)
    example = families[0].names()[-1]
    lines.append(console.paint("faint", f"gcluster machines {example}: all about one size"))
    return console.plain("\n".join(lines))


def listed_families(families: list[Family]) -> list[dict[str, Any]]:
    """Return families for JSON, with their machine types."""
    return [
        {
            "name": family.name,
            "where": family.sites[0],
            "architecture": family.cpu.architecture,
            "machines": family.names(),
            "priced": bool(family.prices),
        }
        for family in families
    ]


def _cell(column: _Column, offer: Offer) -> str:
    text = column.cell(offer)
    if text is None:
        return UNKNOWN
    marked = column.path and is_unverified(offer.machine, column.path.format(_number(offer)))
    return f"{text}{MARK}" if marked else text


def _number(offer: Offer) -> int:
    """Return which of the machine's prices is shown."""
    return offer.machine.prices.index(offer.price) if offer.price else 0


def _threads(offer: Offer) -> int | None:
    return offer.machine.cpu.threads or None


def _gpus(offer: Offer) -> str | None:
    gpu = offer.machine.gpu
    return f"{gpu.count}x{printable(gpu.model)}" if gpu else "none"


def _gpu_memory(offer: Offer) -> str | None:
    return f"{offer.machine.gpu.memory_gib:.0f}" if offer.machine.gpu else ""


def _vcpus(offer: Offer) -> str | None:
    threads = _threads(offer)
    return None if threads is None else str(threads)


def _memory(offer: Offer) -> str | None:
    memory = offer.machine.memory_gib
    return None if memory is None else f"{memory:.0f}"


def _nvlink(offer: Offer) -> str | None:
    gpu, link = offer.machine.gpu, offer.machine.nvlink
    if link is not None:
        return str(link.domain_gpus)
    return "" if gpu is None or gpu.count == 1 else None


def _fabric(offer: Offer) -> str | None:
    fabric = offer.machine.fabric
    return None if fabric is None else short_fabric(fabric)


def _gbps(offer: Offer) -> str | None:
    rate = offer.fabric_gbps
    return None if rate is None else f"{rate:.0f}"


def _nvme(offer: Offer) -> str | None:
    size = offer.machine.nvme_gb
    return None if size is None else f"{size / _TERA:.1f}"


def _price(offer: Offer) -> str | None:
    return f"{offer.price.usd_per_hour:.2f}" if offer.price else None


def _gpu_price(offer: Offer) -> str | None:
    if offer.machine.gpu is None:
        return ""
    price = offer.usd_per_gpu_hour
    return None if price is None else f"{price:.2f}"


def _markets(offer: Offer) -> str | None:
    markets = offer.machine.markets
    return None if markets is None else "".join(MARKETS[market] for market in markets)


_COLUMNS = (
    _Column("WHERE", lambda offer: short_place(offer.where), right=False, may_go=1),
    _Column("GPUS", _gpus, "gpu.model", right=False),
    _Column("GiB", _gpu_memory, "gpu.memory_gib"),
    _Column("CPU", _vcpus, "cpu", may_go=4),
    _Column("RAM", _memory, "memory_gib", may_go=3),
    _Column("NVL", _nvlink, "nvlink.domain_gpus", may_go=5),
    _Column("FABRIC", _fabric, "fabric", right=False),
    _Column("Gb/s", _gbps, "nics"),
    _Column("NVMe", _nvme, "nvme_gb", may_go=6),
    _Column("$/h", _price, "prices.{}.usd_per_hour"),
    _Column("$/GPU", _gpu_price, "prices.{}.usd_per_hour", may_go=2),
    _Column("BUY", _markets, "markets", right=False),
)


def _legend(wanted: MachineFilter, dropped: list[str], shown: str) -> Iterator[str]:
    """Yield what the columns mean, and the marks that are there."""
    letters = ", ".join(f"{letter} {market}" for market, letter in MARKETS.items())
    where = f"in {wanted.region}" if wanted.region else "lowest of the regions known"
    yield "GiB of one GPU; CPU: hardware threads; RAM in GiB; NVL: GPUs in one NVLink domain;"
    yield "Gb/s: all NICs for the GPUs' traffic; NVMe in TB; BUY: how it is sold"
    yield f"  {letters}"
    yield f"$/h: a node, {wanted.market or 'on-demand'}, {where}; $/GPU: one GPU of it"
    if dropped:
        yield f"no room for {', '.join(dropped)}: widen the terminal, or --format json"
    if UNKNOWN in shown:
        yield f"{UNKNOWN} not known"
    if MARK in shown:
        yield _ABOUT_MARK
    if wanted.region:
        yield f"a type whose zones aren't known may still not be offered in {wanted.region}"
    yield "gcluster machines NAME: where each figure comes from and when it was read"


_UNITS = {
    "_gib": "GiB",
    "gbytes_per_s": "GB/s",
    "gbps": "Gb/s",
    "_gb": "GB",
    "_w": "W",
}
"""Units by how a field's name ends."""
_TOGETHER = ("prices.", "quotas.")
"""Figures that are shown in one line for each element."""


_LONGEST_WORD = 40
"""A list without blanks that is longer gets some, so that it can be wrapped."""


def machine_text(machine: Machine, console: Console) -> str:
    """Return a machine type as text."""
    sources: dict[tuple[str, str], int] = {}
    rows = [
        (label, text, sources.setdefault((source, date), len(sources) + 1))
        for label, text, source, date in _rows(machine)
    ]
    left = max(width(label) for label, _, _ in rows)
    lines = [f"{console.paint('strong', printable(machine.name))}   {_places(machine)}", ""]
    for label, text, number in rows:
        lines += _row(label, text, number, left, console)
    lines += ["", *(_source(number, *key, console) for key, number in sources.items())]
    if machine.note:
        lines += ["", *_wrapped(f"note: {printable(machine.note)}", "", "      ", console)]
    if machine.unverified:
        lines += ["", console.paint("faint", _ABOUT_MARK)]
    return console.plain("\n".join(lines))


_ABOUT_MARK = f"{MARK} not confirmed: one source only, or sources differ"


def machine_document(machine: Machine) -> dict[str, Any]:
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
        yield (
            path,
            _marked(_machine_price(price), is_unverified(machine, path)),
            price.source,
            price.date,
        )
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


def _machine_price(price: Price) -> str:
    where = f" in {printable(price.region)}" if price.region else ""
    return f"${price.usd_per_hour:,.2f}/h {price.market}{where}"


def _quota(quota: Quota) -> str:
    unit = {"vcpu": "vCPU", "gpu": "GPU", "node": "node"}[quota.unit]
    plural = "s" if quota.per_node != 1 and unit != "vCPU" else ""
    markets = ", ".join(quota.markets)
    return f"{printable(quota.code)}: {quota.per_node} {unit}{plural} a node ({markets})"


def _row(label: str, message: str, number: int, left: int, console: Console) -> Iterator[str]:
    begin = f"  {pad(label, left)}  "
    if max(map(len, message.split()), default=0) > _LONGEST_WORD:
        message = message.replace(",", ", ")
    shown = _wrapped(f"{message} [{number}]", begin, " " * width(begin), console)
    yield from shown


def _source(number: int, source: str, date: str, console: Console) -> str:
    begin = f"  [{number}] "
    text = f"{printable(source)}, {date}"
    return "\n".join(_wrapped(text, begin, " " * width(begin), console))


def _wrapped(text: str, first: str, rest: str, console: Console) -> list[str]:
    return wrap(text, min(console.width, 100), first, rest)
