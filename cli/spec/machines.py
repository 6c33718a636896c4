"""`gcluster machines`: the machine types of the catalog, compared, or all about one."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from ...lifecycle.cluster.outcome import Exit, LifecycleError, failure
from ...schemas.catalog import Catalog, CatalogError, Machine, load_catalog
from ...schemas.catalog.selection import MachineFilter, families_for, offers, unknown_words
from ...schemas.diagnostics import closest, listing
from ..console import emit, say, stdout
from ..options import Format, OutputFormat
from ..render.document import document
from ..render.spec.machines import (
    families_text,
    listed,
    listed_families,
    machine_document,
    machine_text,
    table,
)

MarketWord: TypeAlias = Literal["on-demand", "spot", "reservation", "capacity-block", "flex-start"]
"""The markets of the catalog, repeated here because typer wants them before it is read."""
OrderWord: TypeAlias = Literal["price", "gpus", "memory", "name"]


def _complete(incomplete: str) -> list[str]:

    return [name for name in load_catalog().machines if name.startswith(incomplete)]


def command(  # noqa: PLR0917  # typer passes them by name
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Show all about one: figures with their sources, prices, quotas, zones.",
            autocompletion=_complete,
            show_default=False,
        ),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="MODEL", help="GPU model: h100, or 8xh100.")
    ] = None,
    cloud: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Provider that has it, as in a spec: aws, local."),
    ] = None,
    fabric: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Fabric class: efa-v2, infiniband-ndr.")
    ] = None,
    region: Annotated[
        str | None,
        typer.Option("--region", metavar="REGION", help="Types it may have, and its prices."),
    ] = None,
    market: Annotated[
        MarketWord | None, typer.Option(help="Types sold so, and the price of that.")
    ] = None,
    sort: Annotated[
        OrderWord | None, typer.Option(help="Order; default: by place, then by name.")
    ] = None,
    catalog: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Also a catalog file of your own; may be repeated."),
    ] = None,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """List the machine types of the catalog and their prices.

    Exit code 1 when no type fits.
    """
    known = _read(catalog or [])
    wanted = MachineFilter(gpu=gpu, cloud=cloud, fabric=fabric, region=region, market=market)
    if name is not None:
        if wanted != MachineFilter() or sort is not None:
            raise _usage(f"{name} is one type: --gpu, --sort and the like are for the list")
        return _show(_named(known, name), fmt)
    _refuse_unknown_words(known, wanted)
    found, families = offers(known, wanted, sort), families_for(known, wanted)
    if fmt is Format.JSON:
        machines = [listed(offer) for offer in found]
        emit(document({"machines": machines, "families": listed_families(families)}))
    else:
        say(table(found, wanted, stdout()))
        if families:
            say(families_text(families, stdout()))
    return Exit.OK if found or families else Exit.FAILED


def _read(files: list[Path]) -> Catalog:

    try:
        return load_catalog(files)
    except CatalogError as error:
        raise LifecycleError(*error.diagnostics, exit_code=Exit.SPEC) from error


def _show(machine: Machine, fmt: Format) -> Exit:
    if fmt is Format.JSON:
        emit(document(machine_document(machine)))
    else:
        say(machine_text(machine, stdout()))
    return Exit.OK


def _named(catalog: Catalog, name: str) -> Machine:
    if name in catalog.machines:  # also any size of a family
        return catalog.machines[name]
    known = {each.casefold(): each for each in catalog.machines}
    if name.casefold() in known:
        return catalog.machines[known[name.casefold()]]

    near = closest(name, catalog.machines)
    hint = f'did you mean "{near}"?' if near else "gcluster machines lists them all"
    raise _usage(f'no machine type is called "{name}"', hint)


def _refuse_unknown_words(catalog: Catalog, wanted: MachineFilter) -> None:

    for unknown in unknown_words(catalog, wanted):
        suggestion = f'did you mean "{unknown.near}"? ' if unknown.near else ""
        raise _usage(
            f'--{unknown.option}: nothing in the catalog is called "{unknown.word}"',
            f"{suggestion}known: {listing(unknown.known, limit=30)}",
        )


def _usage(summary: str, hint: str = "gcluster machines --help") -> LifecycleError:

    return failure("GC941", summary, hint=hint, exit_code=Exit.USAGE)
