"""What a node is asked for drift, in one SSH exec, and how its answer is read (pure)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...schemas.decoding import decode_json
from ..converge import seals, stamps
from ..converge.stamps import Stamps
from ..converge.traces import Traces
from ..ssh import Unreachable

_SECTION = re.compile(r"^=== (\w+)\n", re.MULTILINE)
_SEAL = re.compile(r"([\w.]+):(\w+) (.*) (\S+)")
_LINE = re.compile(r"(\w+) (.*) (\S+)")
_END = "=== end"
# Of the last changes of packages: when, by which command, and who asked for it with sudo.
_PACKAGES = (
    "grep -hE '^(Start-Date|Commandline|Requested-By|Install|Upgrade|Downgrade|Remove|Purge):'"
    " /var/log/apt/history.log | tail -n 60 | cut -c1-2000"
)
_SUDO = "journalctl -q --no-pager -o short-unix -t sudo -n 40 | grep COMMAND= | cut -c1-300"

Item = tuple[str, str]
"""(kind, name)."""


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """What a step left."""

    digest: str
    """The stamp that it left with it."""
    at: int
    """When, in seconds since 1970."""
    items: dict[Item, str]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a log of the node tells of."""

    at: str
    """As the log says it."""
    who: str
    what: str


class NodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a node said."""

    stamps: dict[str, str]
    seals: dict[str, Seal]
    now: dict[Item, str]
    touched: dict[str, int]
    """Path -> when it was changed last, in seconds since 1970."""
    health: dict[str, Any]
    """The node's own report (node_health); {} where there is none."""
    packages: tuple[Change, ...]
    """What changed packages, oldest first."""
    commands: tuple[tuple[int, str, str], ...]
    """(when, who, command line) of the last uses of sudo."""
    scheduler: str
    """What the scheduler's own words printed; "" where it was not asked."""


def look_script(traces: Traces, scheduler: str) -> str:
    """Return the program, for root's sh: all that is asked of one node."""
    paths = " ".join(f"'{path}'" for path in (*traces.paths, *traces.blocks))
    parts = [
        "PATH=$PATH:/usr/sbin:/sbin; exec 2>/dev/null",
        f"echo '=== stamps'; ( {stamps.READ} )",
        f"echo '=== seals'; cd {seals.DIRECTORY} && {{ stat -c 'at %Y %n' *; grep -H . *; }}",
        f"echo '=== now'; {seals.look_command(traces)}",
        f"echo '=== touched'; stat -c '%Y %n' {paths}",
        "echo '=== health'; cat /run/gcluster/node-health.json; echo",
        f"echo '=== packages'; {_PACKAGES}",
        f"echo '=== sudo'; {_SUDO}",
    ]
    if scheduler:
        parts.append(f"echo '=== scheduler'; {scheduler}")
    return "\n".join([*parts, f"echo '{_END}'\n"])


def read_answer(text: str) -> NodeAnswer | Unreachable:
    """Read what a node printed; one that was cut short is no answer."""
    if not text.endswith(f"{_END}\n"):
        return Unreachable(reason="its answer was cut short")
    parts = _SECTION.split(text)
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    carried: Stamps | Unreachable = stamps.parse(said.get("stamps", ""))
    if isinstance(carried, Unreachable):
        return carried
    return NodeAnswer(
        stamps=carried,
        seals=_seals(said.get("seals", "")),
        now=dict(_items(said.get("now", ""))),
        touched=_touched(said.get("touched", "")),
        health=_health(said.get("health", "")),
        packages=_packages(said.get("packages", "")),
        commands=tuple(_commands(said.get("sudo", ""))),
        scheduler=said.get("scheduler", "").removesuffix(f"{_END}\n"),
    )


def _items(text: str) -> list[tuple[Item, str]]:
    found = (match for line in text.splitlines() if (match := _LINE.fullmatch(line)))
    return [((match[1], match[3]), match[2]) for match in found]


def _seals(text: str) -> dict[str, Seal]:
    times: dict[str, int] = {}
    items: dict[str, dict[Item, str]] = {}
    for line in text.splitlines():
        if line.startswith("at "):
            _, at, name = line.split(" ", 2)
            times[name] = int(at)
        elif match := _SEAL.fullmatch(line):
            items.setdefault(match[1], {})[match[2], match[4]] = match[3]
    return {
        step: Seal(digest=kept.pop(("digest", "stamp"), ""), at=times.get(step, 0), items=kept)
        for step, kept in items.items()
        if not step.endswith(".new")
    }


def _touched(text: str) -> dict[str, int]:
    pairs = (line.split(" ", 1) for line in text.splitlines())
    return {path: int(at) for at, path in pairs}


def _health(text: str) -> dict[str, Any]:
    try:
        return decode_json(text.strip().encode() or b"{}", dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def _packages(text: str) -> tuple[Change, ...]:
    """Read apt's history: blocks that begin with Start-Date; local time, as apt writes it."""
    found: list[Change] = []
    for line in text.splitlines():
        key, _, value = line.partition(": ")
        if key == "Start-Date":
            found.append(Change(at=" ".join(value.split()), who="", what=""))
        elif found and key == "Requested-By":
            found[-1] = msgspec.structs.replace(found[-1], who=value.partition(" ")[0])
        elif found:
            what = f"{found[-1].what} {value}".strip()
            found[-1] = msgspec.structs.replace(found[-1], what=what)
    return tuple(found)


def _commands(text: str) -> list[tuple[int, str, str]]:
    """Read sudo's own lines: "1763790000.1 host sudo[12]:  ada : TTY=… ; COMMAND=/usr/bin/vi x"."""
    found = []
    for line in text.splitlines():
        match = re.match(r"(\d+)[.\d]* \S+ sudo\[\d+\]: +(\S+) : .*COMMAND=(.*)", line)
        if match:
            found.append((int(match[1]), match[2], match[3]))
    return found
