"""How often a job should save its state: the write time against the failures of its GPUs.

delta is the time one checkpoint takes, M the mean time between failures of the job, tau the time
between two checkpoints, all in seconds.
"""

from __future__ import annotations

import math

_SECONDS_PER_HOUR = 3600


def mtbf_s(gpus: int, failures_per_gpu_hour: float) -> float:
    """Return M in seconds: one failure of any GPU stops the job."""
    return _SECONDS_PER_HOUR / (gpus * failures_per_gpu_hour)


def daly_interval_s(delta: float, m: float) -> float:
    """Return the tau that wastes least, in seconds.

    Daly's estimate: sqrt(2 delta M) (1 + 1/3 sqrt(delta/2M) + 1/9 (delta/2M)) - delta where
    delta < 2 M, else M (J. T. Daly, A higher order estimate of the optimum checkpoint interval for
    restart dumps, FGCS 22, 2006). Without the terms after the first it is Young's (CACM 17, 1974).
    """
    if delta >= 2 * m:
        return m
    ratio = delta / (2 * m)
    return math.sqrt(2 * delta * m) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - delta


def waste(tau: float, delta: float, m: float) -> float:
    """Return the share of its time that a job loses, at most 1.

    delta/tau is spent writing, and each failure loses tau/2 on average. The time to start again
    adds the same to every tau and is left out.
    """
    return min(1.0, delta / tau + tau / (2 * m))
