"""Keeps stacks of the double in a folder, laid out as Pulumi's file backend does.

Layout and wording are those of Pulumi's DIY backend (pkg/backend/diy, November 2026): checkpoints,
locks, history. Only file:// is supported.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

Json = dict[str, Any]  # the engine's JSON
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # a signature of the protocol


class Refusal(Exception):  # noqa: N818  # it is what the command says
    """What the command answers with exit status 255."""


def now() -> str:
    """Return the time as the engine writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class StackFiles:
    """One stack's files."""

    def __init__(self, url: str, project: str, stack: str) -> None:
        """Name them; nothing is read.

        Raises:
            Refusal: the URL is not of a folder, or the folder does not exist.
        """
        if not url.startswith("file://"):
            raise Refusal(f"error: this double of pulumi keeps state in folders only, not in {url}")
        folder = Path(unquote(urlparse(url).path))
        if not folder.is_dir():
            raise Refusal(f"error: unable to open bucket {url}: stat {folder}: no such directory")
        self._root = folder / ".pulumi"
        self.project, self.stack = project, stack
        self.checkpoint = self._root / "stacks" / project / f"{stack}.json"
        self._locks = self._root / "locks" / "organization" / project / stack
        self._history = self._root / "history" / project / stack

    def read(self) -> Json:
        """Return the deployment.

        Raises:
            Refusal: there is no such stack.
        """
        if not self.checkpoint.exists():
            raise Refusal(f"error: no stack named '{self.stack}' found")
        raw = json.loads(self.checkpoint.read_text(encoding="utf-8"))
        deployment: Json = raw["checkpoint"]["latest"]
        return deployment

    def write(self, deployment: Json) -> None:
        """Keep a deployment, whole or not at all."""
        names = {"stack": f"organization/{self.project}/{self.stack}", "latest": deployment}
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.checkpoint.with_suffix(".new")
        fresh.write_text(json.dumps({"version": 3, "checkpoint": names}), encoding="utf-8")
        fresh.replace(self.checkpoint)

    def remove(self) -> None:
        """Remove the stack and its history."""
        self.checkpoint.unlink()
        for file in self._history.glob("*"):
            file.unlink()

    def rename(self, other: StackFiles) -> None:
        """Become another stack; the lock of the new name isn't looked at.

        pkg/backend/diy/backend.go, renameStack; edit.RenameStack has the new name in URNs.

        Raises:
            Refusal: there is one of that name.
        """
        if other.checkpoint.exists():
            raise Refusal(f"error: a stack named {other.stack} already exists")
        text = json.dumps(self.read())
        other.write(
            json.loads(text.replace(f"urn:pulumi:{self.stack}::", f"urn:pulumi:{other.stack}::"))
        )
        self.checkpoint.unlink()
        if self._history.exists():
            self._history.rename(other._history)

    def lock(self) -> Path:
        """Take the stack's lock and return its file.

        Raises:
            Refusal: another has it.
        """
        held = sorted(self._locks.glob("*.json"))
        if held:
            raise Refusal(_locked(held))
        self._locks.mkdir(parents=True, exist_ok=True)
        mine = self._locks / f"{secrets.token_hex(8)}.json"
        who = {"pid": os.getpid(), "username": getpass.getuser(), "hostname": socket.gethostname()}
        mine.write_text(json.dumps({**who, "timestamp": now()}), encoding="utf-8")
        return mine

    def free(self) -> None:
        """Remove every lock; of a stack that exists, as `pulumi cancel` loads it first.

        pkg/cmd/pulumi/cancel/cancel.go, RequireStack with LoadOnly.
        """
        self.read()
        for file in self._locks.glob("*.json"):
            file.unlink()

    def add_to_history(self, kind: str, began: str, result: str, changes: dict[str, int]) -> None:
        """Add an update to the history."""
        self._history.mkdir(parents=True, exist_ok=True)
        entry = {
            "kind": kind, "startTime": began, "message": "", "environment": {}, "config": {},
            "result": result, "endTime": now(), "resourceChanges": changes,
            "version": len(list(self._history.glob("*.json"))) + 1,
        }  # fmt: skip
        file = self._history / f"{self.stack}-{time.time_ns()}.history.json"
        file.write_text(json.dumps(entry), encoding="utf-8")

    def history(self) -> list[Json]:
        """Return the updates, the newest first."""
        files = sorted(self._history.glob("*.json"), reverse=True)
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def _locked(held: list[Path]) -> str:
    head = (
        f"error: the stack is currently locked by {len(held)} lock(s). Either wait for the other "
        "process(es) to end or delete the lock file with `pulumi cancel`."
    )
    lines = [head]
    for file in held:
        output = json.loads(file.read_text(encoding="utf-8"))
        lines.append(
            f"  file://{file}: created by {output['username']}@{output['hostname']} "
            f"(pid {output['pid']}) at {output['timestamp']}"
        )
    return "\n".join(lines)
