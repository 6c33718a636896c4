"""What a job did with its time: attempts, what ended them, and the share that counts (goodput).

Paid are all nodes of the allocation from its start to its end, spares too; nodes that are given
back before its end until then. Useful is what an
attempt did from its first printed line until the checkpoint that the next one resumed from; of one
that succeeded, until its end. What came after that checkpoint is done again, and counts as lost.
Of an attempt that still runs what counts ends with the newest checkpoint.

`journal.py FOLDER JOB` prints the account of a job that saves into a folder, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class Journal:
    """Events of one job, in a file next to its checkpoints, where a job queued again goes on."""

    def __init__(self, file: Path | None) -> None:
        """Read what earlier runs of the job wrote; without a file only this run is known."""
        self._file = file
        self.events: list[Event] = []
        with contextlib.suppress(OSError):
            if file is not None:
                text = file.read_text(encoding="utf-8", errors="replace")
                self.events = list(_events(text))
                if self.events and self.events[-1]["event"] != "leave":
                    # Its node was lost: the file was touched until then.
                    self.add("leave", at=file.stat().st_mtime)

    def add(self, event: str, **fields: Any) -> None:
        """Add one event; a full disk costs the line and not the job."""
        entry = {"at": time.time(), "event": event, **fields}
        self.events.append(entry)
        if self._file is not None:
            with contextlib.suppress(OSError), self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def copied(self, failed: str | None) -> None:
        """Add how a copy of a checkpoint ended, "" where it is made, unless that is known."""
        known = [event.get("failed") for event in self.events if event["event"] == "copy"]
        if failed is not None and failed != (known[-1] if known else None):
            self.add("copy", failed=failed)

    def touch(self) -> None:
        """Note that the job still runs, by the file's time."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.utime(str(self._file))

    def summary(self) -> list[str]:
        """Return the goodput and what each interruption cost, as lines."""
        return summary(self.events, time.time())


def _events(text: str) -> Sequence[Event]:
    """Return the events of a file; a line that was cut off is none."""
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            entry = json.loads(line)
            if isinstance(entry["event"], str) and isinstance(entry["at"], (int, float)):
                found.append(entry)
    return found


def saved_at(checkpoint: str) -> float:
    """Return when a checkpoint was complete, by its manifest; 0 where none is resumed from."""
    if not checkpoint:
        return 0.0
    try:
        manifest = json.loads((Path(checkpoint) / "MANIFEST.json").read_text(encoding="utf-8"))
        return float(manifest["written"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def account(events: Sequence[Event], now: float, saved: float = 0.0) -> dict[str, Any]:
    """Return what was paid and what counts, and what each interruption cost.

    Args:
        events: of one job.
        now: seconds since 1970; a clock that jumped makes no time negative.
        saved: when the newest checkpoint was complete, for an attempt that still runs.

    Returns:
        `paid` and `useful`: node seconds; `interruptions`: `seconds` without a step that counts,
        and `cause`, of each; `uncopied`: why the newest checkpoint has no copy, "" otherwise;
        `gates`: `when` its nodes were measured, GB/s in the `middle` (0: no result), and the
        `slow` ones.
    """
    attempts = _attempts(events, now, saved)
    paid = _paid(events, now)
    useful = sum(each["useful"] * each["nodes"] for each in attempts)
    pairs = zip(attempts, attempts[1:])
    interruptions = [
        {
            "seconds": max(0.0, following["first"] - one["first"] - one["useful"]),
            "cause": one["cause"],
        }
        for one, following in pairs
    ]
    copies = [str(event.get("failed", "")) for event in events if event["event"] == "copy"]
    return {
        "paid": paid,
        "useful": min(paid, useful),
        "interruptions": interruptions,
        "uncopied": copies[-1] if copies else "",
        "gates": [
            {
                "when": str(event.get("when", "before")),
                "middle": float(event.get("middle", 0.0)),
                "slow": [str(node) for node in event.get("slow", [])],
            }
            for event in events
            if event["event"] == "gate"
        ],
    }


def summary(events: Sequence[Event], now: float) -> list[str]:
    """Return goodput and interruptions as lines."""
    found = account(events, now)
    paid, useful = found["paid"], found["useful"]
    lines = []
    if paid > 0:
        lines.append(
            f"gcluster: goodput {useful / paid:.0%}: "
            f"{useful:,.0f} of {paid:,.0f} node seconds count"
        )
    for number, one in enumerate(found["interruptions"], 1):
        cost, cause = one["seconds"], one["cause"]
        lines.append(f"gcluster: interruption {number} cost {cost:,.0f} s: {cause}")
    if found["uncopied"]:
        lines.append(f"gcluster: {found['uncopied']}")
    return lines


def _paid(events: Sequence[Event], now: float) -> float:
    """Return the node seconds of all allocations."""
    total, began, nodes = 0.0, 0.0, 0
    for event in events:
        if event["event"] == "begin":
            began, nodes = event["at"], int(event.get("nodes", 0))
        elif event["event"] in ("leave", "shrink") and nodes:
            total += nodes * max(0.0, event["at"] - began)
            began, nodes = event["at"], int(event.get("nodes", 0))
    return total + nodes * max(0.0, now - began)


def _attempts(events: Sequence[Event], now: float, saved: float) -> list[Event]:
    """Return the attempts with their first line (time), useful seconds, nodes and end."""
    found: list[Event] = []
    for event in events:
        kind = event["event"]
        if kind == "start":
            found.append({**event, "first": event["at"], "stop": now, "cause": "", "done": False})
        elif found and kind == "first":
            found[-1]["first"] = event["at"]
        elif found and kind == "stop":
            found[-1].update(
                stop=event["at"], cause=event.get("cause", ""), done=event.get("done", False)
            )
        elif found and kind == "leave" and not found[-1]["cause"] and not found[-1]["done"]:
            found[-1].update(stop=event["at"], cause="the node of the job's script was lost")
    for number, each in enumerate(found):
        resumed = [later["saved"] for later in found[number + 1 :]]
        if number + 1 == len(found) and not each["done"] and saved:
            resumed = [saved]  # the next attempt would go on from there
        ended = min([each["stop"], *resumed]) if resumed or each["done"] else each["first"]
        each["useful"] = max(0.0, ended - each["first"])
    return found


def main(folder: str, job: str) -> None:
    """Print a job's account; one without a journal has none, so null."""
    try:
        text = (Path(folder) / f".journal-{job}").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        sys.stdout.write("null\n")
        return
    newest = max((saved_at(str(each)) for each in Path(folder).iterdir()), default=0.0)
    sys.stdout.write(json.dumps(account(_events(text), time.time(), newest)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
