"""What must hold whatever goes wrong, as a table: add a row, and every command is held to it.

An invariant looks at one command that ended, and says what is broken; "" when it holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from .cluster import TortureCluster
from .process import Ended

CODES = {0, 1, 2, 3, 4, 5, 6, 64, 130}
"""Exit codes that docs/exit-codes.md lists."""


class Step(NamedTuple):
    """One command, and what the scenario knows of the cluster."""

    ended: Ended
    cluster: TortureCluster
    is_damaged: bool
    """Whether an object of the state is damaged and was not repaired yet."""
    is_raced: bool
    """Whether another process is stopped in the middle of its work."""
    is_mute: bool
    """Whether its output was closed or full: then it can say nothing."""

    @property
    def verb(self) -> str:
        """What was requested."""
        return " ".join(word for word in self.ended.words[:2] if word.isalpha())


class Invariant(NamedTuple):
    """One row of the table."""

    name: str
    broken: Callable[[Step], str]


def _traceback(step: Step) -> str:
    output = step.ended.out + step.ended.err
    marks = ("Traceback (most recent call last)", "GC949", "internal error")
    return next((f"it says {mark}: {output[-1500:]}" for mark in marks if mark in output), "")


def _end(step: Step) -> str:
    if step.ended.is_hung:
        return "it gives no answer"
    code = step.ended.code
    return "" if code is None or code in CODES else f"exit code {code}"


def _next_command(step: Step) -> str:
    """Every error says what to do next, or which place of the spec is wrong."""
    if step.ended.code in {None, 0} or step.is_mute:
        return ""
    errors = [d for d in step.ended.diagnostics if d.get("severity") == "error"]
    answer = ("hint", "span", "file", "patch")
    mute = [d for d in errors if not any(map(d.get, answer)) and d.get("code") not in _PLAIN]
    return f"no next command: {mute[0].get('code')} {mute[0].get('summary')}" if mute else ""


_PLAIN = {"GC909"}
"""The answer was no."""


def _double(step: Step) -> str:
    nodes = step.cluster.nodes()
    twice = [name for name in nodes if " in " in name]
    more = nodes.keys() - step.cluster.ever - set(twice)
    return f"there twice: {twice}" if twice else f"never asked for: {more}" if more else ""


def _healthy(step: Step) -> str:
    """Nothing is called well that isn't."""
    if step.ended.code != 0 or step.is_raced:
        return ""
    nodes, wanted = step.cluster.nodes(), step.cluster.wanted
    booted = {name for name, node in nodes.items() if node["booted"]}
    if step.verb == "up" and (nodes.keys() != wanted or booted != wanted):
        return f"up is well with {sorted(booted)} booted of {sorted(nodes)}, not {sorted(wanted)}"
    if step.verb == "down" and nodes:
        return f"down is well, and there are {sorted(nodes)}"
    if step.verb == "status" and not step.is_mute:
        seen = {n["name"] for n in json.loads(step.ended.out)["nodes"] if n["reachable"]}
        return f"status calls {seen - booted} reachable" if seen - booted else ""
    if step.verb == "state check" and step.is_damaged:
        return "the state is called whole, and it is damaged"
    return ""


def _lost(step: Step) -> str:
    """What up says is well is on record, each node once."""
    if step.verb != "up" or step.ended.code != 0 or step.is_raced:
        return ""
    found = step.cluster.on_record()
    if found is None:
        return ""  # damage that was accepted: what exists was adopted, and `down` must find it
    ids = {node["id"] for node in step.cluster.nodes().values()}
    return f"on no record: {ids - found}" if ids - found else ""


INVARIANTS: tuple[Invariant, ...] = (
    Invariant("no traceback", _traceback),
    Invariant("a known end", _end),
    Invariant("every message names what to do next", _next_command),
    Invariant("nothing double", _double),
    Invariant("nothing called healthy that isn't", _healthy),
    Invariant("nothing lost", _lost),
)
HEALED = "a second up ends healthy"
"""The invariant of a whole run: once nothing goes wrong any more, what the messages say to do leads
to a cluster that is well, and `down` then leaves nothing."""
