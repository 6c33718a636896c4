"""The table of findings (`data/findings.yaml`): why a job may be slow, and what may break next."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

from msgspec import Meta

from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file
from ..alerts import Condition
from .boards import DATA, Unit


class Finding(SpecModel, frozen=True, kw_only=True):
    """One line of the page, and the query that says where it holds."""

    name: Annotated[str, Meta(pattern=r"^[a-z-]+$")]
    title: str
    means: str
    unit: Unit | Literal["none"]
    """Of the query's value; none: the value says nothing to a person."""
    needs: tuple[Condition, ...] = ()
    query: str


class Findings(SpecModel, frozen=True, kw_only=True):
    """All of them, in the order in which the page has them."""

    slow: tuple[Finding, ...]
    """Of one job: $job in their queries."""
    next: tuple[Finding, ...]
    """Of the whole cluster."""


@lru_cache(maxsize=1)
def findings() -> Findings:
    """Return the table."""
    return read_data_file(DATA / "findings.yaml", Findings)
