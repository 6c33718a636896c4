"""`gcluster cost`: what specs cost, from the spec and the catalog alone."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ...lifecycle.cluster.outcome import Exit, failure
from ...schemas.catalog import load_catalog
from ...schemas.cost.bill import Bill, bill
from ...schemas.diagnostics import Diagnostic
from ...schemas.fleet.checked import gather
from ...schemas.load import Loaded
from ...schemas.spec import ClusterSpec
from ...schemas.spec.units import Percent
from ..console import emit, say, stderr, stdout
from ..options import Format, OutputFormat, complete_spec
from ..render.diagnostics import diagnostics_text
from ..render.document import document
from ..render.spec.cost import bills_text

STDIN_LIMIT = 8 * 2**20 + 1
"""Bytes read from standard input: one more than a spec may have, so that more is noticed."""


def command(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...",
            help='Paths of specs, or of folders with specs; "-" is stdin.',
            autocompletion=complete_spec,
        ),
    ],
    utilisation: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the month that elastic nodes run: 60%; default: the budget's.",
        ),
    ] = None,
    chart: Annotated[
        bool, typer.Option("--chart", help="Draw bars instead of tables.", show_default=False)
    ] = False,
    fmt: OutputFormat = Format.TEXT,
) -> Exit:
    """Show the cost of specs by pool, site, market and power.

    Prices are those of the catalog. Nothing is looked up: each price is shown with its source and
    date. Exit code 2 when a spec has errors.
    """
    share = None if utilisation is None else _share(utilisation)
    if chart and fmt is Format.JSON:
        raise _usage("--chart draws, which --format json can't hold", "leave one of the two out")
    gathered = gather(specs, lambda: sys.stdin.buffer.read(STDIN_LIMIT))
    wrong = [each for each in gathered.specs if each.spec is None]
    if wrong or any(note.is_error for note in gathered.notes):
        return _refuse(wrong, gathered.notes, fmt)
    bills = [
        _bill(each.spec, each.catalogs, share)
        for each in gathered.specs
        if each.spec is not None  # those without were refused
    ]
    if fmt is Format.JSON:
        emit(document({"clusters": bills}))
    else:
        say(bills_text(bills, stdout(), chart=chart))
    return Exit.OK


def _bill(spec: "ClusterSpec", catalogs: "tuple[Path, ...]", share: float | None) -> Bill:

    return bill(spec, load_catalog(catalogs), utilisation=share)


def _share(text: str) -> float:
    """Read "60%" or 0.6; a usage error where it is no share of a month."""
    try:
        share = Percent.parse(text).value if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise _usage(f'--utilisation "{text}" is no share of a month', "above 0% up to 100%: 60%")
    return share


def _refuse(wrong: list[Loaded], notes: "tuple[Diagnostic, ...]", fmt: Format) -> Exit:
    """Report what is wrong with the specs: as one document, or on standard error."""
    found = [*notes, *(diagnostic for each in wrong for diagnostic in each.diagnostics)]
    if fmt is Format.JSON:
        emit(document({"ok": False, "exit_code": int(Exit.SPEC), "diagnostics": found}))
        return Exit.SPEC

    texts = {each.file: each.text for each in wrong}
    console = stderr()
    sys.stderr.write(f"{console.fit(diagnostics_text(found, console, texts))}\n")
    return Exit.SPEC


def _usage(summary: str, hint: str) -> Exception:

    return failure("GC941", summary, hint=hint, exit_code=Exit.USAGE)
