"""Scripts that a source runs on its nodes: roles of gcluster replace some, others are hooks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ..structure.decoding import decode_yaml
from .draft import Draft

_TABLE = Path(__file__).with_suffix(".yaml")
_PLAYS = frozenset({"name", "hosts", "become", "gather_facts", "vars", "handlers"})
_TASKS = ("pre_tasks", "tasks", "post_tasks")
_COLLECTION = re.compile(r"[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*")
_CHECK_SCRIPT = "it was written for other nodes: look whether what it expects is there"


class _Known(msgspec.Struct, frozen=True):
    """A published script."""

    name: str
    """Regular expression of the name of its file, or of the end of its address."""
    why: str


class _Tool(msgspec.Struct, frozen=True):
    """The published scripts of a tool."""

    tool: str
    source: str
    date: str
    scripts: list[_Known]


class NotCarriedError(Exception):
    """A script can't become a hook; the message says why."""


class Scripts:
    """The hooks of a draft while they are put together."""

    def __init__(self, draft: Draft, tool: str) -> None:
        """Write into a draft.

        Args:
            draft: its `hooks`.
            tool: whose scripts they are, as scripts.yaml calls it.
        """
        self._draft = draft
        self._known = next(each.scripts for each in _tools() if each.tool == tool)

    def own_way(self, name: str) -> str:
        """Return which role replaces a published script, or "" where none does."""
        for known in self._known:
            if re.search(f"(?:^|/)(?:{known.name})$", name):
                return f"{known.why} (a published script by its name)"
        return ""

    def shell(
        self, name: str, text: str, pools: Sequence[str], *, arguments: str = "", kind: str = ""
    ) -> None:
        """Carry a program.

        Args:
            name: of its file.
            text: the program.
            pools: that it runs on; none: all.
            arguments: as a shell reads them.
            kind: prolog or epilog, which run around jobs; "" runs once on each node.
        """
        hook: dict[str, Any] = {"type": kind or "script"}
        hook["text"] = text if text.startswith("#!") else f"#!/bin/sh\n{text}"
        if arguments:
            hook["arguments"] = shlex.split(arguments)
        self._add(name, hook, pools)

    def fetched(
        self, name: str, address: str, pools: Sequence[str], arguments: Sequence[str], **point: str
    ) -> None:
        """Carry a program that nodes fetch by HTTPS when they are made, as they do now.

        Args:
            name: of its file.
            address: https://...
            pools: that it runs on; none: all.
            arguments: of the program.
            point: `before` or `after` a stage.
        """
        text = (
            "#!/bin/bash\nset -euo pipefail\nprogram=$(mktemp)\n"
            f"curl --fail --silent --show-error --location --retry 5 {shlex.quote(address)} "
            '--output "$program"\nchmod 700 "$program"\nexec "$program" "$@"\n'
        )
        hook: dict[str, Any] = {"type": "script", "text": text, **point}
        if arguments:
            hook["arguments"] = list(arguments)
        self._add(name, hook, pools)

    def file(self, destination: str, text: str, pools: Sequence[str]) -> None:
        """Carry a file that is put onto nodes, readable by all."""
        mark = "END_OF_FILE"
        while f"\n{mark}\n" in f"\n{text}\n":
            mark += "_"
        ended = text if text.endswith("\n") else f"{text}\n"
        program = (
            "#!/bin/sh\n"
            f"install -D -m 0644 /dev/stdin {shlex.quote(destination)} <<'{mark}'\n{ended}{mark}\n"
        )
        self._add(destination, {"type": "script", "text": program}, pools)

    def playbook(self, name: str, text: str, pools: Sequence[str]) -> None:
        """Carry a playbook as a role.

        Args:
            name: of its file.
            text: a playbook of one play.
            pools: that it runs on; none: all.

        Raises:
            NotCarriedError: it isn't one play of tasks with ansible.builtin alone.
        """
        play = _play(text)
        used = {word for key in (*_TASKS, "handlers") for word in _modules(play.get(key))}
        if used:
            raise NotCarriedError(
                f"it uses {', '.join(sorted(used))}: hooks: {{type: role, collections}}"
            )
        tasks = [task for key in _TASKS[:2] for task in play.get(key) or ()]
        after = list(play.get("post_tasks") or ())
        if after and play.get("handlers"):
            tasks.append({"name": "Run the handlers", "ansible.builtin.meta": "flush_handlers"})
        if play.get("gather_facts") is not False:
            tasks.insert(0, {"name": "Gather facts", "ansible.builtin.setup": {}})
        files = {"tasks/main.yml": _dumped(tasks + after)}
        if play.get("handlers"):
            files["handlers/main.yml"] = _dumped(play["handlers"])
        hook: dict[str, Any] = {"type": "role", "files": files}
        if play.get("vars"):
            hook["variables"] = play["vars"]
        self._add(name, hook, pools)

    def _add(self, name: str, hook: dict[str, Any], pools: Sequence[str]) -> None:
        hooks = self._draft.more.setdefault("hooks", {})
        plain = name.rstrip("/").rpartition("/")[2].partition(".")[0].replace("_", "-").lower()
        called = self._draft.fit(plain or "script", "hook", hooks)
        hooks[called] = hook | ({"pools": list(pools)} if pools else {})
        self._draft.leave(f"hook {called}", _CHECK_SCRIPT, "guess")


@cache
def _tools() -> tuple[_Tool, ...]:
    return tuple(decode_yaml(_TABLE.read_bytes(), list[_Tool]))


def _play(text: str) -> dict[str, Any]:
    try:
        plays = decode_yaml(text, list[dict[str, Any]])
    except msgspec.DecodeError:
        raise NotCarriedError("no playbook can be read in it: hooks: {type: role}") from None
    if len(plays) != 1:
        raise NotCarriedError("it has several plays: a hook of type role for each")
    unknown = plays[0].keys() - _PLAYS - {*_TASKS}
    if unknown or not any(plays[0].get(key) for key in _TASKS):
        what = ", ".join(sorted(unknown)) or "no tasks"
        raise NotCarriedError(f"its play has {what}: hooks: {{type: role, path}}")
    return plays[0]


def _modules(tasks: Any) -> set[str]:
    """Return the modules of tasks, and of blocks in them, that are of other collections."""
    found: set[str] = set()
    for task in tasks if isinstance(tasks, list) else ():
        for key, value in task.items() if isinstance(task, dict) else ():
            if key in {"block", "rescue", "always"}:
                found |= _modules(value)
            elif _COLLECTION.fullmatch(str(key)) and not str(key).startswith("ansible.builtin."):
                found.add(str(key))
    return found


def _dumped(tasks: list[Any]) -> str:
    text: str = yaml.safe_dump(tasks, sort_keys=False, allow_unicode=True)
    return text
