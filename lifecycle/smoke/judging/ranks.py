"""Whether the run came to its end, and whether every rank was in ONE communicator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import ceil

from ....schemas.derived.hostlist import fold
from ..reading.log import AllReduceLog
from .numbers import counted_wrong
from .verdict import Expectation, Reason, Warned

WRONG_NUMBERS = 7
"""Exit status of nccl-tests and of our payload when values were wrong (facts: its sources)."""

_ENDED_WITH_7 = re.compile(
    rf"(?:exit(?:ed with(?: exit)?)?|non-zero) (?:code|status)\D{{0,3}}{WRONG_NUMBERS}\b"
    r"|\bmpirun detected|\bPrimary job|BAD TERMINATION",
    re.IGNORECASE,
)
"""Messages of launchers about it; mpirun and Hydra print the status only in a later line."""
_IN_ONE_DOMAIN = "nvlink"


def _aborted(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    counted = counted_wrong(log)
    expected_ends = {0, WRONG_NUMBERS} if counted else {0}
    errors = [e for e in log.errors if not (counted and _ENDED_WITH_7.search(e))]
    if expected.exit_status not in expected_ends:
        yield _aborted_by(f"the launcher ended with status {expected.exit_status}")
        for line in errors[:3]:
            yield _aborted_by(line[:200])
    elif errors and not expected.exit_status:
        yield _aborted_by(errors[0][:200])


def _missing_rank(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    seen = Counter(rank.rank for rank in log.ranks)
    missing = sorted(set(range(expected.ranks)) - seen.keys())
    if missing:
        who = ", ".join(map(str, missing[:10]))
        have = len(seen)
        yield _missing(f"{have} of {expected.ranks} ranks took part; missing: {who}")
    extra = sorted(seen.keys() - set(range(expected.ranks)))
    repeated = sorted(rank for rank, times in seen.items() if times > 1)
    if extra or repeated:
        who = ", ".join(map(str, (extra + repeated)[:10]))
        yield _missing(f"ranks that should not be there, or are there twice: {who}")
    yield from _hosts(log, expected)
    yield from _one_ring(log, expected)


def _hosts(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    ranks_of = Counter(rank.host for rank in log.ranks)
    # A rank may print its host with the domain; a cloud's node may have a dot in its own name.
    seen = {name for host in ranks_of for name in (host, host.partition(".")[0])}
    silent = set(expected.nodes) - seen
    if log.ranks and silent:
        yield _missing(f"no rank ran on {fold(silent)}")
    if expected.node_count is None or not ranks_of:
        return
    if len(ranks_of) != expected.node_count:
        yield _missing(f"ranks ran on {len(ranks_of)} of {expected.node_count} nodes")
        return
    uneven = sorted(h for h, n in ranks_of.items() if n * len(ranks_of) != len(log.ranks))
    if uneven:
        counts = ", ".join(f"{host} {ranks_of[host]}" for host in uneven[:5])
        yield _missing(f"the ranks are not spread evenly over the nodes: {counts}")
    devices = Counter((rank.host, rank.device) for rank in log.ranks)
    twice = sorted(f"{host} GPU {device}" for (host, device), n in devices.items() if n > 1)
    if twice:
        yield _missing(f"several ranks shared a GPU: {', '.join(twice[:5])}")


def _one_ring(log: AllReduceLog, expected: Expectation) -> Iterator[Reason]:
    if log.groups > 1 and log.groups != expected.groups:
        yield _missing(f"the ranks were split into {log.groups} groups, each alone")
    elif log.groups == 1 < expected.groups:
        yield _missing(f"the ranks were not split into {expected.groups} groups")
    size = expected.ranks // expected.groups
    sizes = sorted({c.ranks for c in log.nccl.communicators} - {size})
    if sizes:
        has = ", ".join(map(str, sizes[:5]))
        yield _missing(f"a communicator had {has} ranks instead of {size}")
    if expected.node_count is None:
        return
    right = {None, expected.node_count}
    wire = expected.wire
    if wire is not None and (wire.domain_ranks or wire.fabric == _IN_ONE_DOMAIN):
        # NCCL counts an NVLink domain as one node
        right.add(ceil(expected.ranks / (wire.domain_ranks or expected.ranks)))
    spans = sorted({c.nodes or 0 for c in log.nccl.communicators if c.nodes not in right})
    if spans:
        has = ", ".join(map(str, spans[:5]))
        yield _missing(f"a communicator spanned {has} nodes instead of {expected.node_count}")


RANKS = (_aborted, _missing_rank)


def ring_remarks(log: AllReduceLog, expected: Expectation) -> Iterator[Warned]:
    """Report what of the ring was taken from the table's list of ranks alone."""
    wire = expected.wire
    if wire is None or wire.simulated or expected.node_count in {None, 1} or not log.ranks:
        return
    if not log.nccl.communicators:
        text = "no rank's init line is in the log: one communicator follows from the table alone"
        yield Warned(code="one-ring-not-shown", message=text)
    models = sorted({rank.what for rank in log.ranks if expected.gpu not in rank.what})
    if models:
        text = f"the machine has {expected.gpu} GPUs, the log says {', '.join(models[:3])}"
        yield Warned(code="other-gpu", message=text)


def _missing(message: str) -> Reason:
    return Reason(code="missing-rank", message=message)


def _aborted_by(message: str) -> Reason:
    return Reason(code="aborted", message=message)
