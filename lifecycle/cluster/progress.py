"""What a long command reports while it runs: values that the renderer turns into bars or lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from ...schemas.diagnostics import Diagnostic


class StageStarted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A top-level step of a command begins: "nodes", "converge", "smoke" ..."""

    name: str
    total: int | None = None


class StageProgress(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something was done or begun inside a stage."""

    name: str
    done: int
    total: int
    detail: str = ""
    """Node and step at work: "gpu003 slurm.configure"."""


class StageFinished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A stage ended. `summary` is what a person reads on its line."""

    name: str
    ok: bool
    summary: str
    seconds: float


class Finding(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An event worth showing that is not the end: a node left out, a warning."""

    diagnostic: Diagnostic


Progress: TypeAlias = StageStarted | StageProgress | StageFinished | Finding
Reporter: TypeAlias = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Discard all events."""
