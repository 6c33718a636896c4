"""What `down` is about to remove, what it removed, and what is still there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gcluster.cli.render.cells import printable
from gcluster.cli.render.quantities import counts, plural, usd_per_hour

if TYPE_CHECKING:
    from gcluster.cli.render.surface import Surface
    from gcluster.lifecycle.down import DownResult
    from gcluster.stacks.provider import Leftover

_LISTED = 40


def existing_text(existing: tuple[Leftover, ...], surface: Surface) -> str:
    """Return what there is to remove, data that is kept apart."""
    lines = [_item(surface.paint("error", "-"), item) for item in existing if not item.kept_data]
    if len(lines) > _LISTED:
        lines = [*lines[:_LISTED], f"  and {len(lines) - _LISTED:,} more"]
    lines += [_item(" ", item) + "   data: kept" for item in existing if item.kept_data]
    kinds = Counter(item.kind for item in existing if not item.kept_data)
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
        lines += [_item(surface.paint("error", "!"), item) for item in result.leftovers]
        lines.append(f"go on with: gcluster down {result.cluster}")
    elif not result.nothing_there:
        lines.append("looked again by its tag: nothing is left")
    return surface.plain("\n".join(lines))


def _item(mark: str, item: Leftover) -> str:
    price = "" if item.usd_per_hour is None else f"   {usd_per_hour(item.usd_per_hour)}"
    return f"  {mark} {item.kind} {printable(item.name)}{price}"
