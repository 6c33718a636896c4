"""Whether the table is whole, its values right and checked, and its large message fast enough."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.derived.floor import ELEMENT_BYTES
from ..launch import FACTOR, IN_PARTS, ONE_SIDED, Collective, busbw_factor, sweep
from ..reading.log import AllReduceLog, Half, Row
from .verdict import Code, Expectation, Reason

ROUNDING, SHARE = 0.006, 0.005
"""How far the average may be from the rows': they are printed to 0.01, or three figures."""

RELATIVE, ABSOLUTE = 0.02, 0.02
"""How far printed numbers may contradict each other. They are printed to 0.01 below 1,000."""

COARSE_US, COARSE = 1e7, 0.06
"""From this time on nccl-tests 2.19 prints two figures ("1.2e+07"), which may be so far off."""

MOST_SIZES = 3
"""Sizes with wrong values that are shown one by one."""

_PART_BYTES = 16
"""What nccl-tests rounds the part of a rank down to (all_gather.cu, alltoall.cu)."""


def counted_wrong(log: AllReduceLog) -> bool:
    """Whether the log itself counts wrong values."""
    return bool(log.footer.wrong) or any(half.wrong for row in log.rows for half in _halves(row))


def slowest_at_largest(log: AllReduceLog, collective: Collective = "all_reduce") -> float | None:
    """Return the bus bandwidth in GB/s at the largest message, the lower of the checked halves."""
    size = max((row.size for row in log.rows), default=None)
    last = [row for row in log.rows if row.size == size]
    speeds = (half.busbw for row in last for half in _checked(row, collective))
    return min(speeds, default=None)


def _unreadable(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    if not log.tables:
        what = "AllReduce" if expected.collective == "all_reduce" else expected.collective
        yield _reason("unreadable", f"the log holds no {what} table")
    elif log.tables > 1:
        yield _reason("unreadable", f"{log.tables} programs wrote tables into the log")
    elif not log.rows:
        yield _reason("unreadable", "the table has no rows")
    if log.overflow:
        yield _reason("unreadable", "there are more ranks, rows or tables than a run has")
    if log.collective and not log.collective.startswith(expected.collective):
        requested = "an AllReduce" if expected.collective == "all_reduce" else expected.collective
        yield _reason("unreadable", f"the log is of {log.collective}, not of {requested}")
    for line in log.damaged[:3]:
        yield _reason("unreadable", f"a row can't be read: {line[:120]}")
    ranks = {n // expected.groups for n in (expected.ranks, len(log.ranks) or expected.ranks)}
    for row in log.rows:
        halves = _checked(row, expected.collective)
        if not all(
            any(_agrees(row, half, n, expected.collective) for n in ranks) for half in halves
        ):
            yield _reason("unreadable", f"the numbers at {row.size} B contradict each other")


def _wrong_result(log: AllReduceLog, _: Expectation) -> Iterator[Reason]:
    wrong = [(row.size, sum(half.wrong or 0 for half in _halves(row))) for row in log.rows]
    bad = [(size, count) for size, count in wrong if count]
    for size, count in bad[:MOST_SIZES]:
        yield _reason("wrong-result", f"{count:g} wrong values at {size} B")
    if len(bad) > MOST_SIZES:
        yield _reason("wrong-result", f"and at {len(bad) - MOST_SIZES} more sizes")
    footer = log.footer
    if footer.wrong is not None and not (footer.wrong == 0 and footer.wrong_ok):
        yield _reason("wrong-result", f"values out of bounds: {footer.wrong:g}")


def _unchecked(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    if log.options is not None and log.options.validated is False:
        yield _reason("unchecked", "the program ran without checking the values")
    sizes = [
        row.size
        for row in log.rows
        if any(h.wrong is None and h.error is None for h in _checked(row, expected.collective))
    ]
    if sizes:
        yield _reason("unchecked", f"the values at {sizes[0]} B were not checked")


def _too_small_sweep(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    sizes = [row.size for row in log.rows]
    if not sizes:
        return
    why = f": only {log.reduced_to} B fit into memory" if log.reduced_to else ""
    wanted = _expected_sizes(log, expected)
    requested = wanted[-1] if wanted and expected.max_bytes is not None else 0
    if max(sizes) + _slack(expected) < max(requested, expected.reach_bytes):
        need = max(requested, expected.reach_bytes)
        text = f"the largest message was {max(sizes)} B, {need} B was requested{why}"
        yield _reason("too-small-sweep", text)
    if wanted and min(sizes) > wanted[0] and expected.min_bytes is not None:
        text = f"the smallest message was {min(sizes)} B, {wanted[0]} B was requested"
        yield _reason("too-small-sweep", text)


def _truncated(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    if not log.rows:
        return
    wanted = _expected_sizes(log, expected)
    if not wanted:
        yield _reason("truncated", "the line with the requested sizes is missing")
    sizes, slack = {row.size for row in log.rows}, _slack(expected)
    sizes_from_log = expected.max_bytes is None
    missing = [
        size
        for size in wanted
        if not any(size - slack <= there <= size for there in sizes)
        and (sizes_from_log or min(sizes) < size < max(sizes))
    ]
    if missing:
        yield _reason("truncated", f"no row for {', '.join(map(str, missing[:10]))} B")
    footer = log.footer
    if footer.wrong is None:
        yield _reason("truncated", "the line with the values out of bounds is missing")
    if footer.average is None:
        yield _reason("truncated", "the line with the average bus bandwidth is missing")
    elif abs(footer.average - _average(log)) > ROUNDING + SHARE * footer.average:
        yield _reason("truncated", "the average is not that of the rows: lines are missing")
    if log.started and not footer.concluded:
        yield _reason("truncated", "the log ends before the test was concluded")


def _below_floor(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    if not log.footer.average_ok:
        yield _reason("below-floor", "the log has FAILED for its average (NCCL_TESTS_MIN_BW)")
    reached = slowest_at_largest(log, expected.collective)
    if expected.floor is None or reached is None:
        return
    size = max(row.size for row in log.rows)
    if size + _slack(expected) >= expected.reach_bytes and reached < expected.floor:
        text = f"{reached:.2f} GB/s at {size} B, the floor is {expected.floor:.2f} GB/s"
        if expected.floor_reason:
            text += f" ({expected.floor_reason})"
        yield _reason("below-floor", text)


NUMBERS = (_unreadable, _truncated, _wrong_result, _unchecked, _too_small_sweep, _below_floor)


def _expected_sizes(log: AllReduceLog, expected: Expectation) -> tuple[int, ...]:
    """Return the sizes of the sweep: those requested, or those in the log; () unknown."""
    least, most, factor, step = expected.min_bytes, expected.max_bytes, expected.factor, 0
    if least is None or most is None:
        options = log.options
        if options is None:
            return ()
        least = options.min_bytes if least is None else least
        most = min(filter(None, (most or options.max_bytes, log.reduced_to)))
        factor, step = factor or options.factor, options.step_bytes
    least = min(least, most)  # as nccl-tests does where less memory is left than was requested
    if least <= 0:
        return ()
    element = next((row.size // row.count for row in log.rows if row.count), ELEMENT_BYTES)
    # nccl-tests, src/common.cu: a factor of 1 means steps of a fixed number of bytes
    if step:
        return _steps(least, most, step, element)
    return sweep(least, most, factor or FACTOR, element)


def _steps(least: int, most: int, step: int, element: int) -> tuple[int, ...]:
    sizes = range(least, most + 1, max(step, (most - least) // 10_000, 1))
    return tuple(size // element * element for size in sizes)


def _reason(code: Code, message: str) -> Reason:
    return Reason(code=code, message=message)


def _halves(row: Row) -> tuple[Half, Half]:
    return row.out_of_place, row.in_place


def _checked(row: Row, collective: Collective) -> tuple[Half, ...]:
    return (row.out_of_place,) if collective in ONE_SIDED else _halves(row)


def _slack(expected: Expectation) -> int:
    """Return the bytes that a size may be short of the requested one: ranks get whole parts."""
    return _PART_BYTES * expected.ranks if expected.collective in IN_PARTS else 0


def _average(log: AllReduceLog) -> float:
    values = [half.busbw for row in log.rows for half in _halves(row)]
    return sum(values) / len(values)


def _agrees(row: Row, half: Half, ranks: int, collective: Collective) -> bool:
    """Whether size, time and bandwidths belong together: columns that slipped don't."""
    moved = row.size / (half.time_us * 1e3) if half.time_us else half.algbw
    coarse = half.time_us is not None and half.time_us >= COARSE_US
    return _close(half.algbw, moved, COARSE if coarse else RELATIVE) and _close(
        half.busbw, half.algbw * busbw_factor(ranks, collective), RELATIVE
    )


def _close(left: float, right: float, share: float) -> bool:
    return abs(left - right) <= ABSOLUTE + share * max(abs(left), abs(right))
