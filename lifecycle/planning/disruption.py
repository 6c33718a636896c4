"""How much a change disturbs, from nothing to what can't be undone."""

from __future__ import annotations

from typing import get_args

from ...stacks.provider import Effect, ResourceChange
from .changes import Disruption

DISRUPTIONS: tuple[Disruption, ...] = get_args(Disruption)
"""From the mildest to the worst."""
_OF_EFFECT: dict[Effect, Disruption] = {
    "create": "none",
    "keep": "none",
    "update": "in-place",
    "replace": "replace",
    "delete": "destroy",
}


def disruption_of(change: ResourceChange) -> Disruption:
    """Return how much a provider's change to one resource disturbs."""
    return _OF_EFFECT[change.effect]


def worst(disruptions: set[Disruption]) -> Disruption:
    """Return the worst of several; "none" of none."""
    return max(disruptions, key=DISRUPTIONS.index, default="none")
