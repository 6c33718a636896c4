"""What a repair found to do, and how it ended, as values."""

from __future__ import annotations

import msgspec

from ...schemas.diagnostics import Diagnostic
from ..outcome import Exit
from ..state.event_types import RepairAction
from ..state.repair_queue import Repair


class Intended(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as it is shown before anything is done."""

    entry: Repair
    actions: tuple[RepairAction, ...]
    """What will be tried, in order, until it is fit."""


class RepairResult(msgspec.Struct, frozen=True, kw_only=True):
    """How `repair` ended, node by node."""

    cluster: str
    admitted: tuple[str, ...] = ()
    """They serve."""
    given_up: dict[str, str] = {}
    """Node -> why; nothing is tried on it before somebody names it."""
    held: dict[str, str] = {}
    """Node -> why it was left alone; it stays in the queue."""
    queue: tuple[Repair, ...] = ()
    """What is in the queue now."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """FAILED when a node was given up, PENDING when one was left alone."""
        if self.given_up:
            return Exit.FAILED
        return Exit.PENDING if self.held else Exit.OK
