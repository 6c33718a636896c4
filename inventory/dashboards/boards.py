"""The table of dashboards (`data/*.yaml`): boards, their panels, and the queries of each."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file
from ..alerts import Condition

DATA = Path(__file__).parent / "data"
_TABLES = ("boards.yaml", "more_boards.yaml")
Unit: TypeAlias = Literal[
    "percentunit", "currencyUSD", "bytes", "Bps", "celsius", "watt", "s", "µs", "short"
]
"""As Grafana names them (packages/grafana-data, valueFormats/categories.ts)."""
_PLACEHOLDER = re.compile(r"\$([a-z]+)")


class Panel(SpecModel, frozen=True, kw_only=True):
    """One drawing: lines over time."""

    title: str
    unit: Unit
    needs: tuple[Condition, ...] = ()
    queries: dict[str, str]
    """Legend, with {{label}} for a label of the series, -> PromQL."""


class Board(SpecModel, frozen=True, kw_only=True):
    """The panels that answer one question."""

    name: Annotated[str, Meta(pattern=r"^[a-z]+$")]
    title: str
    answers: str
    variable: Literal["pool", "node", "job"] | None = None
    """What it is of: its queries name it as $pool, $node or $job; None: the whole cluster."""
    needs: tuple[Condition, ...] = ()
    panels: tuple[Panel, ...]


class _Boards(SpecModel, frozen=True):
    boards: tuple[Board, ...]


@lru_cache(maxsize=1)
def boards() -> dict[str, Board]:
    """Return all boards by name, in the order of the table."""
    found = (board for name in _TABLES for board in read_data_file(DATA / name, _Boards).boards)
    return {board.name: board for board in found}


@lru_cache(maxsize=1)
def boards_of_pods() -> dict[str, Board]:
    """Return the boards of a Kubernetes cluster by name, without panels of Slurm's figures."""
    slurm = {"slurm", "slurmdbd"}
    kept = {
        name: msgspec.structs.replace(
            board, panels=tuple(panel for panel in board.panels if not slurm & set(panel.needs))
        )
        for name, board in boards().items()
        if not slurm & set(board.needs)
    }
    own = read_data_file(DATA / "pods.yaml", _Boards).boards
    return kept | {board.name: board for board in own}


def boards_for(conditions: Collection[Condition]) -> list[Board]:
    """Return the boards of a cluster that has what is listed, without panels that need more."""
    return [
        msgspec.structs.replace(
            board, panels=tuple(p for p in board.panels if set(p.needs) <= set(conditions))
        )
        for board in boards().values()
        if set(board.needs) <= set(conditions)
    ]


def placeholders(query: str) -> set[str]:
    """Return the names of a query's placeholders: {"job"} for one with $job."""
    return set(_PLACEHOLDER.findall(query))
