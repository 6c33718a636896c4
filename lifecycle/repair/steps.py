"""What is tried on a node, and in which order (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..state.event_types import RepairAction
    from ..state.repair_queue import Repair

ORDER: tuple[RepairAction, ...] = ("retry", "replace")
"""A node is booted and converged again as it is, then made anew; then it is given up."""


def next_action(entry: Repair, *, replaceable: bool) -> RepairAction | None:
    """Return what to try next; None: everything was tried.

    What a killed run had begun has no result and is tried again.
    """
    return next(
        (a for a in ORDER if a not in entry.tried and (a != "replace" or replaceable)), None
    )


def why_given_up(entry: Repair, *, replaceable: bool) -> str:
    """Return the reason with which a node is given up: what was tried, and what it died of."""
    words = {"retry": "booted and converged again", "replace": "made anew"}
    tried = " and ".join(words[action] for action in entry.tried)
    alone = "" if replaceable else ", and its site can't make it anew"
    return f"{tried}{alone}: {entry.reason}"
