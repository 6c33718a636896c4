"""The verdict on an AllReduce, why it failed, and the bandwidth of every message size."""

from __future__ import annotations

from collections.abc import Iterator

from ....lifecycle.smoke.judging.verdict import Verdict
from ....lifecycle.smoke.reading.log import AllReduceLog, Row
from ....lifecycle.smoke.run import SmokeResult
from ....lifecycle.smoke.saved import fault_lines
from ...console import Console, printable
from ..quantities import bandwidth, microseconds, plural, size
from ..table import Column, tabulate

_COLUMNS = tuple(Column(title) for title in ("size", "time", "algbw", "busbw", "wrong"))


def smoke_text(verdict: Verdict, log: AllReduceLog, console: Console) -> str:
    """Return the table, the verdict and the reasons against it.

    Of each size the slower of the two halves (out of place, in place) is shown, and the wrong
    values of both.
    """
    lines = [*_table(log, console), "", _headline(verdict, console)]
    if verdict.floor_reason:
        lines.append(f"  {console.paint('faint', printable(_floor(verdict)))}")
    if verdict.rails and not verdict.rails.startswith("not proven"):
        lines.append(f"  {console.paint('faint', printable(f'rails: {verdict.rails}'))}")
    lines += [
        f"  {console.paint('error', reason.code)}: {printable(reason.message)}"
        for reason in verdict.reasons
    ]
    lines += [
        f"  {console.paint('warning', warned.code)}: {printable(warned.message)}"
        for warned in verdict.warnings
        if warned.code != "no-floor"
    ]
    return console.plain("\n".join(lines).lstrip("\n"))


def suspects_text(result: SmokeResult, console: Console) -> str:
    """Return what the search for the fault of each failed AllReduce found; "" without a search."""
    lines = [
        f"\n  {console.paint('error', '✘')} {printable(line)}"
        for located in result.located.values()
        for line in fault_lines(located)
    ]
    return console.plain("".join(lines))


def _headline(verdict: Verdict, console: Console) -> str:
    mark = console.paint("good", "✔") if verdict.passed else console.paint("error", "✘")
    facts = [plural(verdict.ranks, "rank")]
    if verdict.busbw is not None and verdict.largest is not None:
        facts.append(f"{bandwidth(verdict.busbw)} busbw at {size(verdict.largest)}")
    facts.append(f"over {printable(verdict.transport) or 'an unknown transport'}")
    if verdict.floor is not None:
        facts.append(f"floor {bandwidth(verdict.floor)}")
    wrong = "wrong values not counted" if verdict.wrong is None else f"{verdict.wrong:g} wrong"
    simulated = " (simulated GPUs)" if verdict.simulated else ""
    end = "passed" if verdict.passed else "failed"
    return f"{mark} AllReduce {end}: {', '.join([*facts, wrong])}{simulated}"


def _floor(verdict: Verdict) -> str:
    """Say where an automatic floor comes from, or why there is none."""
    return verdict.floor_reason if verdict.floor is None else f"floor: {verdict.floor_reason}"


def _table(log: AllReduceLog, console: Console) -> Iterator[str]:
    if log.rows:
        cells = [_cells(row) for row in log.rows]
        titles, *rows = tabulate(_COLUMNS, cells, console, indent=2).lines
        yield from (console.paint("faint", titles), *rows)


def _cells(row: Row) -> tuple[str, ...]:
    slower = min(row.out_of_place, row.in_place, key=lambda half: half.busbw)
    counts = [half.wrong for half in (row.out_of_place, row.in_place)]
    wrong = "unknown" if None in counts else f"{sum(filter(None, counts)):g}"
    return (
        size(row.size),
        "" if slower.time_us is None else microseconds(slower.time_us),
        bandwidth(slower.algbw),
        bandwidth(slower.busbw),
        wrong,
    )
