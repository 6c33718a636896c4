"""What the storage benchmark has measured: a row for one node and one for all of them."""

from __future__ import annotations

from collections.abc import Iterator

from ....lifecycle.operations.storage.figures import Rates, StorageFigures, StorageReport
from ...console import Console, printable
from ..quantities import bandwidth, plural
from ..table import Column, tabulate

_GIGA = 1e9
_COLUMNS = tuple(
    Column(title)
    for title in ("storage", "nodes", "write", "read", "creates/s", "stats/s", "unlinks/s")
)


def storage_text(report: StorageReport, console: Console) -> str:
    """Return the table and, below it, what is to be known of each storage."""
    rows = [
        cells
        for name, figures in report.storage.items()
        if figures.alone.write_bytes_per_s is not None
        for cells in _rows(name, figures)
    ]
    lines = []
    if rows:
        titles, *table = tabulate(_COLUMNS, rows, console, indent=2).lines
        lines += [console.paint("faint", titles), *table, ""]
    for name, figures in report.storage.items():
        good = not figures.problem
        mark = console.paint("good", "✔") if good else console.paint("error", "✘")
        lines += [f"{mark} {name}: {printable('; '.join(_facts(figures)))}"]
    if report.left_out:
        lines.append(f"  left out, busy or not fit: {printable(report.left_out)}")
    return console.plain("\n".join(lines))


def _rows(name: str, figures: StorageFigures) -> Iterator[tuple[str, ...]]:
    yield (name, "1", *_cells(figures.alone))
    if figures.node_count > 1:
        yield ("", str(figures.node_count), *_cells(figures.together))


def _cells(rates: Rates) -> tuple[str, ...]:
    data = (rates.write_bytes_per_s, rates.read_bytes_per_s)
    counts = (rates.creates_per_s, rates.stats_per_s, rates.unlinks_per_s)
    return (
        *("" if rate is None else bandwidth(rate / _GIGA) for rate in data),
        *("" if rate is None else f"{rate:,.0f}" for rate in counts),
    )


def _facts(figures: StorageFigures) -> Iterator[str]:
    if figures.problem:
        yield f"not measured: {figures.problem}"
        return
    yield (
        f"{figures.kind} at {figures.mount}, {figures.node_count:,} of "
        f"{plural(figures.mounted_by, 'node')} that mount it"
    )
    if figures.nominal_bytes_per_s is None:
        yield "no nominal figure is known"
    elif figures.share is not None:
        yield (
            f"writes reach {figures.share:.0%} of the nominal "
            f"{bandwidth(figures.nominal_bytes_per_s / _GIGA)}"
        )
    if not figures.is_direct:
        yield "without O_DIRECT: written out within the time, reads may be from caches"
    if figures.is_shared_machine:
        yield "simulated: the nodes are containers of one machine and write to its disk"
