"""DCGM's diagnostics as the long part of burn-in: hours, so in a unit of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .finding import CheckIncomplete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .probe import Probe

TIMEOUT_S = 4 * 3600.0
"""Level 3 takes about half an hour and level 4 up to two hours on eight GPUs (NVIDIA, DCGM User
Guide, DCGM Diagnostics; read 2026-11)."""


def diagnose(level: int, probe: Probe) -> str:
    """Run `dcgmi diag` and return "passed", or in words what did not pass."""
    try:
        # It ends with another code than 0 when a test fails; the JSON says which.
        text = probe.run(
            "dcgmi", "diag", "-r", str(level), "-j", timeout_s=TIMEOUT_S, accept=tuple(range(256))
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
    """Yield test and status; DCGM 3 and 4 nest them differently, the words are the same."""
    if isinstance(answer, dict):
        name = str(answer.get("name") or answer.get("test_name") or name)
        if isinstance(answer.get("status"), str):
            yield name, answer["status"]
        for value in answer.values():
            yield from _results(value, name)
    elif isinstance(answer, list):
        for item in answer:
            yield from _results(item, name)
