"""What failures cost a long run: how often, how often to save, what is lost, what to hold spare.

Young's interval between checkpoints is sqrt(2 C M), Daly's

    sqrt(2 C M) (1 + 1/3 sqrt(C / 2 M) + 1/9 (C / 2 M)) - C      where C < 2 M, else M

for checkpoints of C seconds and M seconds between failures (Young 1974; Daly, Future Generation
Computer Systems 22, 2006). Rates are what others counted: schemas/catalog/reliability.yaml.
"""

from __future__ import annotations

import math

import msgspec

from ...schemas.catalog.figures import reliability as observed

CHECKPOINT_S = 60.0
"""C: how long writing a checkpoint stops the run. An assumption that makes the bandwidth known that
storage must have; asynchronous checkpoints stop it for less."""
RESTART_S = 900.0
"""From a failure until the job computes again: detection, replacement, start. An assumption."""
SPARE_DAYS = 1.0
"""How long a node that failed is away. An assumption; the spares are as many as fail meanwhile."""
_HOUR, _DAY = 3600.0, 86_400.0


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """What failures do to a job of a size."""

    failures_per_day: float
    hours_between: float
    """M, in h."""
    checkpoint_bytes: float
    checkpoint_s: float
    """C."""
    interval_s: float
    """Daly's optimum."""
    write_bytes_per_s: float
    """What storage takes, or must take, to write a checkpoint in C."""
    goodput: float
    """Share of the time that moves the run on."""
    spare_nodes: int
    source: str


def reliability(
    parameters: int, gpus: int, per_node: int, write: float | None = None
) -> Reliability:
    """Return what failures do to a job.

    Args:
        parameters: of the model; what a checkpoint holds of each is in the catalog.
        gpus: of the job; one failure stops all.
        per_node: GPUs of a node.
        write: bytes/s that storage takes; None: as much as writes a checkpoint in CHECKPOINT_S.
    """
    figures = observed()
    rate = figures.failures[0]
    per_second = rate.per_gpu_hour * gpus / _HOUR
    between = 1 / per_second
    size = parameters * figures.checkpoints.bytes_per_parameter
    saving = CHECKPOINT_S if write is None else size / write
    interval = daly_s(saving, between)
    # saving, and for each failure the restart and half an interval that is done again
    lost = saving / (interval + saving)
    again = (RESTART_S + (interval + saving) / 2) / between
    return Reliability(
        failures_per_day=per_second * _DAY,
        hours_between=between / _HOUR,
        checkpoint_bytes=size,
        checkpoint_s=saving,
        interval_s=interval,
        write_bytes_per_s=size / saving,
        goodput=max(0.0, 1 - lost) / (1 + again),
        spare_nodes=_spares(per_second * _DAY * SPARE_DAYS) if gpus > per_node else 0,
        source=f"{rate.source}, {rate.date}",
    )


def young_s(checkpoint_s: float, between_s: float) -> float:
    """Return Young's interval between checkpoints in s."""
    return math.sqrt(2 * checkpoint_s * between_s)


def daly_s(checkpoint_s: float, between_s: float) -> float:
    """Return Daly's interval between checkpoints in s."""
    if checkpoint_s >= 2 * between_s:
        return between_s
    part = checkpoint_s / (2 * between_s)
    young = young_s(checkpoint_s, between_s)
    return young * (1 + math.sqrt(part) / 3 + part / 9) - checkpoint_s


def _spares(expected: float) -> int:
    """Return the nodes that are enough for 95 of 100 days: Poisson with that mean."""
    enough, total, count, term = 0.95, 0.0, 0, math.exp(-expected)
    while total + term < enough and count < 10 * (expected + 10):
        total += term
        count += 1
        term *= expected / count
    return count
