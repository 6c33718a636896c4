"""Slurm's view of this node: drain it with a reason, and lift only drains of our own.

Slurm uses the HealthCheckProgram's exit code for one purpose: when slurmd starts, a failure keeps
it from registering. So the program sets the node's state itself, as slurm.conf(5) requires, and
fails only where it could not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..finding import CheckIncomplete
from ..probe import Probe

PREFIX = "gcluster-health: "
"""Every drain of ours begins with it; no other is ever lifted or overwritten."""
TIMEOUT_S = 5.0
MOST_REASON = 250
_DRAINED = ("DRAIN", "FAIL")


@dataclass(frozen=True)
class SlurmNode:
    """The controller's record of a node."""

    state: str
    reason: str

    @property
    def is_drained(self) -> bool:
        """No job starts there."""
        return any(word in self.state for word in _DRAINED)

    @property
    def is_ours(self) -> bool:
        """The reason is one that we gave."""
        return self.reason.startswith(PREFIX)


def node_of(node: str, probe: Probe) -> SlurmNode:
    """Return the controller's record of the node.

    Raises:
        CheckIncomplete: it doesn't respond or doesn't have the node.
    """
    text = probe.run("scontrol", "--oneliner", "show", "node", node, timeout_s=TIMEOUT_S)
    state = re.search(r" State=(\S+)", text)
    reason = re.search(r" Reason=(.*?)(?: \[[^\]@ ]+@[^\]]+\])?\s*$", text, re.MULTILINE)
    if state is None:
        raise CheckIncomplete(f"scontrol says of {node}: {text.strip()[:200]}")
    return SlurmNode(state=state[1], reason=reason[1] if reason else "")


def drain(node: str, reason: str, probe: Probe) -> str:
    """Drain the node unless it is; return a text of what was done.

    Raises:
        CheckIncomplete: the controller could not be updated.
    """
    ours = (PREFIX + " ".join(reason.split()))[:MOST_REASON]
    now = node_of(node, probe)
    if now.is_drained and not now.is_ours:
        return f"was drained already: {now.reason or 'no reason given'}"
    if now.is_drained and now.reason == ours:
        return "is drained"
    _update(node, probe, "State=DRAIN", f"Reason={ours}")
    return "drained"


def lift(node: str, probe: Probe) -> str:
    """Lift a drain of ours; return a text of what was done, "" for nothing.

    Raises:
        CheckIncomplete: the controller could not be updated.
    """
    now = node_of(node, probe)
    if not (now.is_drained and now.is_ours):
        return ""
    _update(node, probe, "State=RESUME")
    return f"drain lifted: {now.reason.replace(PREFIX, '', 1)}"


def _update(node: str, probe: Probe, *words: str) -> None:
    probe.run("scontrol", "update", f"NodeName={node}", *words, timeout_s=TIMEOUT_S)
