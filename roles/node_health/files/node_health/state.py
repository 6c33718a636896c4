"""The life of a node: in service, spare, in RMA, in burn-in; and the way back into service.

A node that was spare or in RMA comes back through burn-in only: clean runs in a row over some time,
and DCGM's diagnostics where the cluster has them; these take hours, so they have a separate unit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from .expected import BurnIn
from .finding import CheckIncomplete, Finding
from .probe import Probe
from .store import Store

STATES = ("in-service", "spare", "rma", "burn-in")
FILE = "state"
DIAGNOSE_TIMEOUT_S = 4 * 3600.0
"""Level 3 takes about half an hour and level 4 up to two hours on eight GPUs (NVIDIA, DCGM User
Guide, DCGM Diagnostics; read 2026-11)."""
_MOST_HISTORY = 50


@dataclass(frozen=True)
class NodeState:
    """Where in its life the node is."""

    state: str = "in-service"
    since: float = 0
    """Seconds since 1970."""
    reason: str = ""
    clean: int = 0
    """Clean runs in a row (burn-in)."""
    clean_since: float = 0
    dcgm: str = ""
    """The result of DCGM's diagnostics: "", "passed", or what failed."""
    history: list[dict[str, Any]] = field(default_factory=list)

    def finding(self, wanted: BurnIn) -> Finding | None:
        """Return what keeps the node from jobs by its state alone."""
        why = self.reason or "no reason given"
        if self.state == "burn-in":
            left = f"{self.clean}/{wanted.runs} clean runs"
            level = f", dcgm {self.dcgm or 'not run'}" if wanted.dcgm_level else ""
            return Finding("burn-in", f"{why} ({left}{level})")
        return None if self.state == "in-service" else Finding(self.state, why)


class StateRefusedError(Exception):
    """A change of state that isn't allowed, with the reason."""


def read_state(store: Store) -> NodeState:
    """Return the state; a node without one is in service.

    Raises:
        CheckIncomplete: the file exists and can't be read.
    """
    data = store.read(FILE)
    if data is None:
        return NodeState()
    try:
        state = NodeState(**data)
    except TypeError as error:
        raise CheckIncomplete(f"the node's state can't be read: {error}") from error
    if state.state not in STATES:
        raise CheckIncomplete(f"the node's state is {state.state!r}, which is unknown")
    return state


def changed(before: NodeState, to: str, reason: str, *, skip_burn_in: bool = False) -> NodeState:
    """Return the state after a manual change.

    Raises:
        StateRefusedError: a spare or repaired node would take jobs without burn-in.
    """
    if to == "in-service" and before.state in {"spare", "rma", "burn-in"} and not skip_burn_in:
        raise StateRefusedError(
            f"a node in {before.state} comes back through burn-in: "
            "node-health state set burn-in --reason ..., or add --skip-burn-in"
        )
    return _moved(before, to, reason)


def after_checks(before: NodeState, wanted: BurnIn, *, clean: bool) -> NodeState:
    """Return the state after a run of the checks: burn-in continues, ends, or starts again."""
    if before.state != "burn-in":
        return before
    now = time.time()
    if not clean:
        return replace(before, clean=0, clean_since=0)
    since = before.clean_since or now
    going = replace(before, clean=before.clean + 1, clean_since=since)
    done = going.clean >= wanted.runs and now - since >= wanted.minutes * 60
    tested = not wanted.dcgm_level or going.dcgm == "passed"
    return _moved(going, "in-service", "burn-in passed") if done and tested else going


def write_state(store: Store, state: NodeState) -> None:
    """Keep the state.

    Raises:
        CheckIncomplete: it can't be written.
    """
    store.write(FILE, asdict(state))


def _moved(before: NodeState, to: str, reason: str) -> NodeState:
    now = time.time()
    line = {"at": now, "from": before.state, "to": to, "reason": reason}
    history = [*before.history, line][-_MOST_HISTORY:]
    return NodeState(state=to, since=now, reason=reason, history=history)


def diagnose(level: int, probe: Probe) -> str:
    """Run `dcgmi diag` and return "passed", or what did not pass."""
    try:
        # It exits with a code other than 0 when a test fails; the JSON has which.
        text = probe.run(
            "dcgmi",
            "diag",
            "-r",
            str(level),
            "-j",
            timeout_s=DIAGNOSE_TIMEOUT_S,
            accept=tuple(range(256)),
        )
        answer = json.loads(text[text.index("{") :])
    except CheckIncomplete as error:
        return str(error)
    except ValueError:
        return "dcgmi diag answers what can't be read"
    results = list(_results(answer))
    failed = sorted({name for name, status in results if status.lower() == "fail"})
    if failed:
        return f"failed: {', '.join(failed)}"
    passed = [name for name, status in results if status.lower() == "pass"]
    return "passed" if passed else "dcgmi diag ran no test"


def _results(answer: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield test and status; DCGM 3 and 4 nest them differently, with the same keys."""
    if isinstance(answer, dict):
        name = str(answer.get("name") or answer.get("test_name") or name)
        if isinstance(answer.get("status"), str):
            yield name, answer["status"]
        for value in answer.values():
            yield from _results(value, name)
    elif isinstance(answer, list):
        for item in answer:
            yield from _results(item, name)
