"""What a look at the ledger found: leftovers with their price, and what is gone."""

from __future__ import annotations

from collections.abc import Iterator

from ...lifecycle.ledger_check import LedgerCheck
from .cells import printable
from .down import item_line, kept_lines
from .quantities import plural, usd_per_hour
from .surface import Surface


def ledger_text(check: LedgerCheck, surface: Surface) -> str:
    """Return the check as text: the verdict first."""
    lines = [_verdict(check, surface), *_leftovers(check, surface)]
    lines += [
        f"  ? {printable(gone.key)} of site {gone.site}: in the ledger, and not there "
        f"({printable(gone.provider_id)})"
        for gone in check.absent
    ]
    lines += kept_lines(check.cluster, check.kept)
    return surface.plain("\n".join(lines))


def _verdict(check: LedgerCheck, surface: Surface) -> str:
    looked = f"{plural(check.listed, 'thing')} with its tag"
    silent = ", ".join(check.silent)
    if check.leftovers:
        many = plural(len(check.leftovers), "leftover")
        price = usd_per_hour(check.usd_per_hour)
        if check.usd_per_hour is None and check.known_usd_per_hour:
            price = f"{usd_per_hour(check.known_usd_per_hour)} and more: prices are unknown"
        return surface.paint("error", f"{check.cluster}: {many} of {looked}, {price}")
    if silent:
        return surface.paint("error", f"{check.cluster}: not known, {silent} can't be asked")
    return f"{check.cluster}: {looked}, none of it left over"


def _leftovers(check: LedgerCheck, surface: Surface) -> Iterator[str]:
    for stray in check.leftovers:
        line = item_line(surface.paint("error", "!"), stray.item)
        price = "   price unknown" if stray.item.usd_per_hour is None else ""
        yield f"{line}{price}   site {stray.site}: {printable(stray.item.provider_id)}"
        yield f"      {stray.why}"
    if check.leftovers:
        yield f"remove them with: gcluster down {check.cluster}" + (
            "" if check.ended else "   (all of the cluster), or by hand at their site"
        )
