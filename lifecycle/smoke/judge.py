"""The verdict on an AllReduce log. It fails closed: what the log doesn't prove is a failure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from gcluster.lifecycle.smoke.busbw import FACTOR, busbw_factor, sweep
from gcluster.schemas.hostlist import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gcluster.lifecycle.smoke.log import AllReduceLog, Half, Row

Code: TypeAlias = Literal[
    "wrong-result",
    "unchecked",
    "missing-rank",
    "below-floor",
    "too-small-sweep",
    "truncated",
    "aborted",
    "unreadable",
]

WRONG_NUMBERS = 7
"""Exit status of nccl-tests and of our payload when values were wrong (facts: its sources)."""

ROUNDING, SHARE = 0.006, 0.005
"""How far the average may be from the rows': they are printed to 0.01, or three figures."""

RELATIVE, ABSOLUTE = 0.02, 0.02
"""How far printed numbers may contradict each other. They are printed to 0.01 below 1,000."""


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What an AllReduce was to prove."""

    ranks: int
    min_bytes: int
    max_bytes: int
    factor: int = FACTOR
    nodes: tuple[str, ...] = ()
    """Hosts that must each have a rank; empty: any hosts will do."""
    floor: float | None = None
    """Least bus bandwidth in GB/s (10^9 bytes) at the largest size; None: none is asked."""
    floor_reason: str = ""
    """What an automatic floor is made of, or why there is none; "" when it was written or none."""
    exit_status: int = 0
    """How the launcher ended."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why it failed."""

    code: Code
    message: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the AllReduce proved what it was to prove. Bandwidths in GB/s (10^9 bytes)."""

    verdict: Literal["pass", "fail"]
    reasons: tuple[Reason, ...]
    ranks: int
    """Ranks that introduced themselves."""
    wrong: float | None
    """Wrong values over all sizes; None: they weren't counted."""
    largest: int | None
    """Largest message in bytes."""
    busbw: float | None
    """Bus bandwidth at the largest message, the lower of out of place and in place."""
    floor: float | None
    transport: str
    """What carried the messages, as observed: "ethernet btl=tcp"; "" when nothing was."""
    simulated: bool
    """Whether the payload says that its GPUs are simulated."""
    floor_reason: str = ""
    """What an automatic floor is made of, or why there is none: "no floor: ..."."""

    @property
    def passed(self) -> bool:
        """Whether it is a pass."""
        return self.verdict == "pass"


def judge(log: AllReduceLog, expected: Expectation) -> Verdict:
    """Return the verdict, with every reason that speaks against a pass."""
    reasons = tuple(reason for check in CHECKS for reason in check(log, expected))
    largest = max(log.rows, key=lambda row: row.size, default=None)
    return Verdict(
        verdict="fail" if reasons else "pass",
        reasons=reasons,
        ranks=len({rank.rank for rank in log.ranks}),
        wrong=log.footer.wrong,
        largest=largest.size if largest else None,
        busbw=_busbw_at(log, largest.size) if largest else None,
        floor=expected.floor,
        floor_reason=expected.floor_reason,
        transport=_transport(log),
        simulated=any(transport.simulated for transport in log.transports),
    )


def _unreadable(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    if not log.tables:
        yield _reason("unreadable", "the log holds no AllReduce table")
    elif log.tables > 1:
        yield _reason("unreadable", f"{log.tables} programs wrote tables into the log")
    elif not log.rows:
        yield _reason("unreadable", "the table has no rows")
    for line in log.damaged[:3]:
        yield _reason("unreadable", f"a row can't be read: {line[:120]}")
    ranks = {expected.ranks, len(log.ranks) or expected.ranks}
    for row in log.rows:
        if not all(any(_agrees(row, half, n) for n in ranks) for half in _halves(row)):
            yield _reason("unreadable", f"the numbers at {row.size} B contradict each other")


def _aborted(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    expected_ends = {0, WRONG_NUMBERS} if _counted_wrong(log) else {0}
    if expected.exit_status not in expected_ends:
        yield _reason("aborted", f"the launcher ended with status {expected.exit_status}")
        for line in log.errors[:3]:
            yield _reason("aborted", line[:200])
    elif log.errors and not expected.exit_status:
        yield _reason("aborted", log.errors[0][:200])


def _missing_rank(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    seen = Counter(rank.rank for rank in log.ranks)
    missing = sorted(set(range(expected.ranks)) - seen.keys())
    if missing:
        who = ", ".join(map(str, missing[:10]))
        have = len(seen)
        yield _reason("missing-rank", f"{have} of {expected.ranks} ranks took part; missing: {who}")
    extra = sorted(seen.keys() - set(range(expected.ranks)))
    repeated = sorted(rank for rank, times in seen.items() if times > 1)
    if extra or repeated:
        who = ", ".join(map(str, (extra + repeated)[:10]))
        yield _reason("missing-rank", f"ranks that should not be there, or are there twice: {who}")
    silent = set(expected.nodes) - {rank.host.partition(".")[0] for rank in log.ranks}
    if log.ranks and silent:
        yield _reason("missing-rank", f"no rank ran on {fold(silent)}")


def _wrong_result(log: AllReduceLog, _: Expectation) -> Iterator[Reason]:
    for row in log.rows:
        wrong = sum(half.wrong or 0 for half in _halves(row))
        if wrong:
            yield _reason("wrong-result", f"{wrong:g} wrong values at {row.size} B")
    footer = log.footer
    if footer.wrong is not None and not (footer.wrong == 0 and footer.wrong_ok):
        yield _reason("wrong-result", f"values out of bounds: {footer.wrong:g}")


def _unchecked(log: AllReduceLog, _: Expectation) -> Iterator[Reason]:
    if log.options is not None and log.options.validated is False:
        yield _reason("unchecked", "the program was told not to check the values")
    sizes = [
        row.size
        for row in log.rows
        if any(half.wrong is None and half.error is None for half in _halves(row))
    ]
    if sizes:
        yield _reason("unchecked", f"the values at {sizes[0]} B were not checked")


def _too_small_sweep(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    sizes = [row.size for row in log.rows]
    if not sizes:
        return
    wanted = sweep(expected.min_bytes, expected.max_bytes, expected.factor)
    why = f": only {log.reduced_to} B fit into memory" if log.reduced_to else ""
    if max(sizes) < wanted[-1]:
        text = f"the largest message was {max(sizes)} B, {wanted[-1]} B was asked for{why}"
        yield _reason("too-small-sweep", text)
    if min(sizes) > wanted[0]:
        text = f"the smallest message was {min(sizes)} B, {wanted[0]} B was asked for"
        yield _reason("too-small-sweep", text)


def _truncated(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    if not log.rows:
        return
    sizes = {row.size for row in log.rows}
    inside = [
        size
        for size in sweep(expected.min_bytes, expected.max_bytes, expected.factor)
        if min(sizes) < size < max(sizes) and size not in sizes
    ]
    if inside:
        yield _reason("truncated", f"no row for {', '.join(map(str, inside))} B")
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
    if expected.floor is None or not log.rows:
        return
    size = max(row.size for row in log.rows)
    reached = _busbw_at(log, size)
    if reached < expected.floor:
        text = f"{reached:.2f} GB/s at {size} B, the floor is {expected.floor:.2f} GB/s"
        if expected.floor_reason:
            text += f" ({expected.floor_reason})"
        yield _reason("below-floor", text)


CHECKS: tuple[Callable[[AllReduceLog, Expectation], Iterator[Reason]], ...] = (
    _aborted,
    _missing_rank,
    _unreadable,
    _truncated,
    _wrong_result,
    _unchecked,
    _too_small_sweep,
    _below_floor,
)
"""Each yields what speaks against a pass. What carried the messages is checked here too, once a
spec can ask for a fabric."""


def _reason(code: Code, message: str) -> Reason:
    return Reason(code=code, message=message)


def _halves(row: Row) -> tuple[Half, Half]:
    return row.out_of_place, row.in_place


def _counted_wrong(log: AllReduceLog) -> bool:
    return bool(log.footer.wrong) or any(half.wrong for row in log.rows for half in _halves(row))


def _busbw_at(log: AllReduceLog, size: int) -> float:
    return min(row.busbw for row in log.rows if row.size == size)


def _average(log: AllReduceLog) -> float:
    values = [half.busbw for row in log.rows for half in _halves(row)]
    return sum(values) / len(values)


def _agrees(row: Row, half: Half, ranks: int) -> bool:
    """Whether size, time and bandwidths belong together: columns that slipped don't."""
    moved = row.size / (half.time_us * 1e3) if half.time_us else half.algbw
    return _close(half.algbw, moved) and _close(half.busbw, half.algbw * busbw_factor(ranks))


def _close(left: float, right: float) -> bool:
    return abs(left - right) <= ABSOLUTE + RELATIVE * max(abs(left), abs(right))


def _transport(log: AllReduceLog) -> str:
    said = [f"{t.kind} {t.details}".strip() for t in log.transports]
    return ", ".join(dict.fromkeys([*said, *log.channels]))
