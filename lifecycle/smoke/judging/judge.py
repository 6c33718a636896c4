"""The verdict on an AllReduce log. It fails closed: what the log doesn't prove is a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..reading.log import AllReduceLog
from .numbers import NUMBERS, slowest_at_largest
from .rails import RailFindings, rail_reasons, rail_remarks
from .ranks import RANKS, ring_remarks
from .transport import TRANSPORT, observed_transports, transport_remarks
from .verdict import Expectation, Reason, Verdict, Warned

CHECKS: tuple[Callable[[AllReduceLog, Expectation], Iterator[Reason]], ...] = (
    *RANKS,
    *NUMBERS,
    *TRANSPORT,
)
"""Each yields reasons against a pass."""


def judge(log: AllReduceLog, expected: Expectation) -> Verdict:
    """Return the verdict, with every reason against a pass."""
    rails = RailFindings(log, expected)
    reasons = (
        *(reason for check in CHECKS for reason in check(log, expected)),
        *rail_reasons(rails),
    )
    largest = max((row.size for row in log.rows), default=None)
    return Verdict(
        verdict="fail" if reasons else "pass",
        reasons=reasons,
        ranks=len({rank.rank for rank in log.ranks}),
        wrong=log.footer.wrong,
        largest=largest,
        busbw=slowest_at_largest(log, expected.collective),
        floor=expected.floor,
        floor_reason=expected.floor_reason,
        transport=observed_transports(log),
        simulated=any(transport.simulated for transport in log.transports)
        or (expected.wire is not None and expected.wire.simulated),
        warnings=(*_warnings(log, expected), *rail_remarks(rails)),
        fabric=expected.wire.fabric if expected.wire else "",
        rails=rails.proven or (f"not proven: {rails.uncounted}" if rails.uncounted else ""),
        bad_rails=tuple(rails.bad),
    )


def _warnings(log: AllReduceLog, expected: Expectation) -> Iterator[Warned]:
    if expected.floor is None and expected.floor_reason:
        yield Warned(code="no-floor", message=expected.floor_reason.removeprefix("no floor: "))
    yield from ring_remarks(log, expected)
    yield from transport_remarks(log, expected)
    for line in log.nccl.lines[:3]:
        yield Warned(code="nccl-warning", message=line)
