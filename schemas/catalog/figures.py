"""Figures of the catalog with their sources, and how often parts fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from ..spec.model import SpecModel
from ..structure.compose import read_data_file
from .model.machine import Citation, Date, Machine

Value: TypeAlias = "str | float | bool | list[str]"

_ABOUT = frozenset(
    {"name", "sites", "cloud", "source", "date", "sources", "unverified", "note", "simulated"}
)
"""Fields of a machine type that are no figures."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a machine type."""

    path: str
    """Fields with dots between, elements of lists by number: nics.0.gbps."""
    value: Value
    source: str
    date: str
    unverified: bool = False


def figures(machine: Machine) -> tuple[Figure, ...]:
    """Return every figure that is known, in the order of the catalog's format."""
    plain: Mapping[str, object] = msgspec.to_builtins(machine)
    return tuple(
        _figure(machine, path, value)
        for field in machine.__struct_fields__
        if field not in _ABOUT and plain.get(field) is not None
        for path, value in _leaves(plain[field], field)
    )


def is_unverified(machine: Machine, path: str) -> bool:
    """Say whether a figure, a part of it or what it is part of is marked as not confirmed."""
    return any(_within(path, mark) or _within(mark, path) for mark in machine.unverified)


def cited(machine: Machine, path: str) -> Citation:
    """Return where a figure comes from: the closest of `sources`, else the machine's own source."""
    if path.startswith("prices."):
        price = machine.prices[int(path.split(".")[1])]
        return Citation(source=price.source, date=price.date)
    fitting = [name for name in machine.sources if _within(path, name)]
    if fitting:
        return machine.sources[max(fitting, key=len)]
    return Citation(source=machine.source, date=machine.date)


def _figure(machine: Machine, path: str, value: Value) -> Figure:
    citation = cited(machine, path)
    unverified = any(_within(path, mark) for mark in machine.unverified)
    return Figure(
        path=path, value=value, source=citation.source, date=citation.date, unverified=unverified
    )


def _within(path: str, whole: str) -> bool:
    return path == whole or path.startswith(f"{whole}.")


def _leaves(value: object, path: str) -> Iterator[tuple[str, Value]]:
    """Yield what is below a value; the source and date of a price are no figures of their own."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (path.startswith("prices.") and key in {"source", "date"}):
                yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and any(isinstance(element, dict) for element in value):
        for number, element in enumerate(value):
            yield from _leaves(element, f"{path}.{number}")
    elif isinstance(value, list):
        if value:
            yield path, _words(value)
    elif isinstance(value, str | int | float):
        yield path, value


def _words(values: Iterable[object]) -> list[str]:
    return [str(value) for value in values]


_FILE = Path(__file__).with_name("reliability.yaml")
_HOURS_PER_DAY = 24


class ObservedFailures(SpecModel, frozen=True, kw_only=True):
    """Failures that were counted; give interruptions of a job, or failures of a fleet."""

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


class CheckpointSize(SpecModel, frozen=True, kw_only=True):
    """What a checkpoint holds of each parameter of a model."""

    bytes_per_parameter: Annotated[float, Meta(gt=0)]
    unverified: bool = False
    source: str
    date: Date


class Reliability(SpecModel, frozen=True, kw_only=True):
    """The file; of the observations the first one is used."""

    failures: Annotated[list[ObservedFailures], Meta(min_length=1)]
    checkpoints: CheckpointSize


@lru_cache(maxsize=1)
def reliability() -> Reliability:
    """Return the figures that come with gcluster."""
    return read_data_file(_FILE, Reliability)
