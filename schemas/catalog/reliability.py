"""How often GPUs fail and how large checkpoints are: figures with their sources, read as data."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from ..decoding import convert
from ..spec.noun import Noun
from ..text.compose import compose
from .citation import Date

_FILE = Path(__file__).with_suffix(".yaml")
_HOURS_PER_DAY = 24


class ObservedFailures(Noun, frozen=True, kw_only=True):
    """What somebody counted; give interruptions of a job, or failures of a fleet."""

    name: str
    unexpected_interruptions: Annotated[int, Meta(ge=1)] | None = None
    gpus: Annotated[int, Meta(ge=1)] | None = None
    days: Annotated[float, Meta(gt=0)] | None = None
    failures_per_1000_node_days: Annotated[float, Meta(gt=0)] | None = None
    gpus_of_a_node: Annotated[int, Meta(ge=1)] | None = None
    source: str
    date: Date
    note: str | None = None

    @property
    def per_gpu_hour(self) -> float:
        """Failures that stop the job, for each GPU and hour.

        419 / (16384 GPUs x 54 d x 24 h) = 1.97e-5; 6.5 / (1000 d x 8 GPUs x 24 h) = 3.39e-5.

        Raises:
            ValueError: the entry gives too little.
        """
        if self.unexpected_interruptions and self.gpus and self.days:
            return self.unexpected_interruptions / (self.gpus * self.days * _HOURS_PER_DAY)
        if self.failures_per_1000_node_days and self.gpus_of_a_node:
            gpu_days = 1000 * self.gpus_of_a_node
            return self.failures_per_1000_node_days / (gpu_days * _HOURS_PER_DAY)
        raise ValueError(f"{self.name}: no count, or nothing to divide it by")


class CheckpointSize(Noun, frozen=True, kw_only=True):
    """What a checkpoint holds of each parameter of a model."""

    bytes_per_parameter: Annotated[float, Meta(gt=0)]
    unverified: bool = False
    source: str
    date: Date


class Reliability(Noun, frozen=True, kw_only=True):
    """The file; of the observations the first one is used."""

    failures: Annotated[list[ObservedFailures], Meta(min_length=1)]
    checkpoints: CheckpointSize


@lru_cache(maxsize=1)
def reliability() -> Reliability:
    """Return the figures that come with gcluster."""
    document = compose(_FILE.read_text(encoding="utf-8"), file=str(_FILE)).document
    return convert(None if document is None else document.data, Reliability)
