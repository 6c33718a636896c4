"""What an operator reads in a status: the queue, quotas, and causes with their next step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...lifecycle.status.conditions import Cause, PartitionQueue, QueueStatus, QuotaUse
from .cells import pad, printable, width
from .quantities import duration
from .surface import Surface

_MOST_REASONS = 5


def queue_lines(queue: QueueStatus) -> Iterator[str]:
    """Yield the queue as a whole, and by partition where there are several."""
    yield f"queue        {_jobs(queue)}"
    if len(queue.partitions) > 1:
        size = max(width(one.name) for one in queue.partitions)
        for one in queue.partitions:
            yield f"  {pad(one.name, size)}  {_jobs(one)}"
    for waiting in queue.reasons[:_MOST_REASONS]:
        yield f"  {waiting.jobs:,} wait: {printable(waiting.reason)}"
    if more := queue.reasons[_MOST_REASONS:]:
        yield f"  {sum(one.jobs for one in more):,} wait for other reasons"


def quota_lines(quotas: Iterable[QuotaUse]) -> list[str]:
    """Return what accounts have now and may have."""
    rows = [(printable(one.account), _used(one)) for one in quotas]
    size = max((width(account) for account, _ in rows), default=0)
    return ["accounts"] * bool(rows) + [f"  {pad(account, size)}  {used}" for account, used in rows]


MANY_CAUSES = 20
"""Causes that are told one by one; a hall without power has one for each of its nodes."""


def causes_lines(causes: Sequence[Cause], surface: Surface) -> Iterator[str]:
    """Yield each cause and what to do about it; of very many the first, and their number."""
    for cause in causes[:MANY_CAUSES]:
        yield surface.paint("error", f"cause: {printable(cause.summary)}")
        yield f"  next: {printable(cause.next_step)}"
    if len(causes) > MANY_CAUSES:
        yield f"and {len(causes) - MANY_CAUSES} causes more: --format json has them"


def _used(quota: QuotaUse) -> str:
    limit = "" if quota.limit is None else f" of {quota.limit:,}"
    return f"{quota.used:,}{limit} {quota.resource.removeprefix('gres/')}"


def _jobs(queue: QueueStatus | PartitionQueue) -> str:
    waits = queue.oldest_wait_s
    oldest = f", the oldest for {duration(waits)}" if waits is not None else ""
    return f"{queue.running} running, {queue.pending} pending{oldest}"
