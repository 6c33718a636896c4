"""A double of the command `pulumi`: the real Automation API calls it, and it writes down how.

It knows one stack per backend folder, and its lock. Run as a script it is the command; the tests
put it where the engine is looked for. What it says has the form of Pulumi 3.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HISTORY = [
    {
        "kind": "update", "startTime": "2026-11-21T00:00:00.000Z", "message": "", "version": 1,
        "environment": {}, "config": {}, "result": "succeeded",
        "endTime": "2026-11-21T00:00:01.000Z", "resourceChanges": {},
    }
]  # fmt: skip
LOCKED = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to "
    "end or delete the lock file with `pulumi cancel`.\n"
    "  file:///x/.pulumi/locks/organization/p/s/1.json: created by ops@{host} (pid {pid}) at "
    "{when}"
)


def main(words: list[str]) -> int:
    """Answer as Pulumi would; return the exit status."""
    here = Path(__file__).resolve().parent
    if words == ["version"]:
        sys.stdout.write("v3.999.0\n")
        return 0
    words = [word for word in words if word != "--non-interactive"]
    with (here / "calls.jsonl").open("a", encoding="utf-8") as log:
        kept = {k: v for k, v in os.environ.items() if k.startswith("PULUMI_")}
        log.write(json.dumps({"words": words, "environment": kept}) + "\n")
    lock, stack = here / "lock", here / "stack.json"
    verb = " ".join(words[:2]) if words[0] == "stack" else words[0]
    changes = {"up", "refresh", "destroy", "stack import", "stack rm", "stack init"}
    if verb in changes and lock.exists():
        sys.stderr.write(lock.read_text(encoding="utf-8"))
        return 255
    return _answer(verb, words, lock, stack)


def _answer(verb: str, words: list[str], lock: Path, stack: Path) -> int:
    if verb == "stack select" and not stack.exists():
        sys.stderr.write("error: no stack named 'east' found\n")
        return 255
    if verb == "stack init":
        stack.write_text('{"version": 3, "deployment": {"resources": []}}', encoding="utf-8")
    elif verb == "stack import":
        stack.write_bytes(Path(words[words.index("--file") + 1]).read_bytes())
    elif verb == "stack export":
        sys.stdout.write(stack.read_text(encoding="utf-8"))
    elif verb == "stack rm":
        stack.unlink()
    elif verb == "cancel":
        lock.unlink(missing_ok=True)
    elif verb == "stack output":
        sys.stdout.write("{}")
    elif verb == "stack history":
        sys.stdout.write(json.dumps(HISTORY))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
