"""What `down` is about to remove, what it removed, and what is still there."""

from __future__ import annotations

from collections import Counter

from ...lifecycle.down import DownResult
from ...stacks.provider import Leftover
from .cells import printable
from .quantities import counts, plural, usd_per_hour
from .surface import Surface

_LISTED = 40


def existing_text(existing: tuple[Leftover, ...], surface: Surface) -> str:
    """Return what there is to remove: data that goes, all else, and what is kept."""
    goes = [item for item in existing if not item.kept_data]
    lines = [item_line(surface.paint("error", "-"), item) for item in goes if not item.storage]
    if len(lines) > _LISTED:
        lines = [*lines[:_LISTED], f"  and {len(lines) - _LISTED:,} more"]
    lines += [
        item_line(surface.paint("error", "-"), item) + surface.paint("error", "   data: DESTROYED")
        for item in goes
        if item.storage
    ]
    lines += [item_line(" ", item) + f"   {_why(item)}" for item in existing if item.kept_data]
    kinds = Counter(item.kind for item in goes)
    lines.append(f"\n{counts(kinds)} to remove")
    return surface.plain("\n".join(lines))


def down_text(result: DownResult, surface: Surface) -> str:
    """Return how it ended, with the counts."""
    lines = [
        f"site {site}: its machines were not made by gcluster and are left as they are"
        for site in result.untouched
    ]
    if result.nothing_there:
        lines.append(f"{result.cluster}: there is nothing to remove")
    else:
        lines.append(f"{result.cluster}: removed {counts(result.removed) or 'nothing'}")
    if result.leftovers:
        many = plural(len(result.leftovers), "leftover")
        lines.append(surface.paint("error", f"{many} could not be removed:"))
        lines += [item_line(surface.paint("error", "!"), item) for item in result.leftovers]
        lines.append(f"go on with: gcluster down {result.cluster}")
    elif not result.nothing_there:
        left = "nothing is left" if not result.kept else "nothing else is left"
        lines.append(f"looked again by its tag: {left}")
    lines += kept_lines(result.cluster, result.kept)
    return surface.plain("\n".join(lines))


def kept_lines(cluster: str, kept: tuple[Leftover, ...]) -> list[str]:
    """Return what stays, what it costs, and how to remove it; none where nothing stays."""
    data = [item for item in kept if item.storage]
    around = Counter(item.kind for item in kept if not item.storage)
    if not kept:
        return []
    lines = ["kept:"] + [f"{item_line(' ', item)}   {_monthly(item)}" for item in data]
    if around:
        lines.append(f"    {counts(around)}{', which the data stands in' if data else ''}")
    names = dict.fromkeys(name for item in data for name in item.storage)
    words = " ".join(f"--delete-data {name}" for name in names)
    if words:
        lines.append(f"destroy it with: gcluster down {cluster} {words}")
    return lines


def _why(item: Leftover) -> str:
    return "data: kept" if item.storage else "kept: data stands in it"


def _monthly(item: Leftover) -> str:
    if item.usd_per_month is None:
        return "price not known: it is billed by what is in it"
    return f"${item.usd_per_month:,.2f}/month"


def item_line(mark: str, item: Leftover) -> str:
    """Return one thing with its mark in front and its price behind, where that is known."""
    price = "" if item.usd_per_hour is None else f"   {usd_per_hour(item.usd_per_hour)}"
    named = f" ({', '.join(item.storage)})" if item.storage else ""
    return f"  {mark} {item.kind} {printable(item.name)}{named}{price}"
