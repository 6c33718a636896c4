"""Robust statistics: which of many figures is far from its peers.

The median and the median absolute deviation (MAD) don't move when one figure in ten is wrong, as
mean and standard deviation do. The score is that of Iglewicz and Hoaglin, "How to Detect and Handle
Outliers" (ASQC Basic References in Quality Control 16, 1993), as NIST's handbook gives it (NIST/
SEMATECH e-Handbook of Statistical Methods, 1.3.5.17): 0.6745 (x - median) / MAD, an outlier beyond
3.5. Where more than half of the figures are equal the MAD is 0, and 1.253314 times the mean
absolute deviation replaces it (IBM SPSS, "Modified z score").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Literal

import msgspec

SCORE = 3.5
"""Beyond this a figure is an outlier (Iglewicz and Hoaglin)."""
NORMAL, MEAN_NORMAL = 0.6745, 1.253314
"""MAD of a normal distribution in standard deviations; the inverse of its mean deviation."""
BAND = 0.05
"""Share of the median within which nothing is an outlier: healthy nodes of one type are within a
few percent of each other, and noise would otherwise separate nearly equal ones."""
SLOW = 0.7
"""Share of the median below which a figure is always reported (`smoke.domains.SLOW_SHARE` has why):
with few peers one slow one moves the deviation too far for a score."""
FEWEST = 3
"""Least number of peers: of two that differ, either may be wrong."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of peers in one line."""

    count: int
    median: float
    mad: float
    """Median absolute deviation, in the figures' unit."""
    least: float
    most: float


def summary_of(values: Sequence[float]) -> Summary:
    """Return the summary of one figure or more."""
    middle = median(values)
    mad = median(abs(value - middle) for value in values)
    return Summary(count=len(values), median=middle, mad=mad, least=min(values), most=max(values))


def scores(values: Sequence[float]) -> list[float]:
    """Return the modified z-score of each figure; 0 for all where all are equal."""
    if not values:
        return []
    middle = median(values)
    distances = [abs(value - middle) for value in values]
    deviation = median(distances) / NORMAL or fmean(distances) * MEAN_NORMAL
    return [(value - middle) / deviation if deviation else 0.0 for value in values]


def outliers(values: Sequence[float], better: Literal["higher", "lower"]) -> list[int]:
    """Return the places of the figures that are worse than their peers, worst first."""
    if len(values) < FEWEST:
        return []
    middle, sign = median(values), 1 if better == "higher" else -1
    found = []
    for place, (value, score) in enumerate(zip(values, scores(values), strict=True)):
        short = sign * (middle - value)
        far = -sign * score > SCORE and short > BAND * abs(middle)
        if far or _is_slow(value, middle, better):
            found.append((short, place))
    return [place for _, place in sorted(found, reverse=True)]


def _is_slow(value: float, middle: float, better: Literal["higher", "lower"]) -> bool:
    return value < SLOW * middle if better == "higher" else value * SLOW > middle


def spread(values: Iterable[float]) -> float:
    """Return how far repetitions are apart, as a share of their median; 0 for one, or around 0."""
    known = list(values)
    middle = abs(median(known))
    return (max(known) - min(known)) / middle if middle else 0.0
