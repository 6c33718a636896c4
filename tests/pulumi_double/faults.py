"""Faults of the double: at which registration it fails, stalls or is killed.

ROOT/faults.json is a list of faults; one that strikes is taken out first, so each strikes once.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any, Literal

Moment = Literal["registered", "made", "deleted", "locked"]
"""Before the cloud is called; after it made the thing, and nothing is kept; after it is gone;
before a stack exists whose lock is taken."""


class Faults:
    """What shall go wrong in this process."""

    def __init__(self, root: Path) -> None:
        """Read the file when something happens, not before."""
        self._root = root
        self._file = root / "faults.json"
        self._seen: dict[Moment, int] = {"registered": 0, "made": 0, "deleted": 0, "locked": 0}

    def strike(self, moment: Moment, key: str) -> str:
        """Return "" or the message of a failure; stall or die where the file says so.

        A fault is {"moment", "match": pattern of TYPE::NAME, "number": of this process's moments
        of that kind, "do": fail | stall | kill | kill-group, "message"}; "match" and "number" both
        hold where both are given.
        """
        self._seen[moment] += 1
        faults: list[dict[str, Any]] = []
        if self._file.exists():
            faults = json.loads(self._file.read_text(encoding="utf-8"))
        for fault in faults:
            if not self._fits(fault, moment, key):
                continue
            rest = [other for other in faults if other is not fault]
            self._file.write_text(json.dumps(rest), encoding="utf-8")
            return self._do(fault, key)
        return ""

    def _fits(self, fault: dict[str, Any], moment: Moment, key: str) -> bool:
        number = fault.get("number")
        return (
            fault.get("moment", "registered") == moment
            and re.search(str(fault.get("match", "")), key) is not None
            and (number is None or number == self._seen[moment])
        )

    def _do(self, fault: dict[str, Any], key: str) -> str:
        (self._root / "struck.txt").open("a", encoding="utf-8").write(f"{fault['do']} {key}\n")
        if fault["do"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault["do"] == "kill-group":
            os.killpg(os.getpgrp(), signal.SIGKILL)
        if fault["do"] == "stall":
            while True:  # until the test that injected it ends this process
                time.sleep(1)
        return str(fault.get("message", "the double was told to fail here"))
