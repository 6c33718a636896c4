"""Drift of nodes: the query of each node in one SSH exec, its parser and its evaluation (pure).

What a step left is in its seal. Where several steps left the same item the newest seal counts. An
item without a seal can't be compared, which is reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from ....inventory.compile import Step
from ....schemas.structure.decoding import decode_json
from ...nodes.converge import seals, stamps
from ...nodes.converge.role_files import Traces, traces_of
from ...nodes.converge.stamps import WORN, Stamps
from ...nodes.ssh import Unreachable
from .values import Behind, Drift, stamp_of

_SECTION = re.compile(r"^=== (\w+)\n", re.MULTILINE)
_SEAL = re.compile(r"([\w.]+):(\w+) (.*) (\S+)")
_LINE = re.compile(r"(\w+) (.*) (\S+)")
_END = "=== end"
# Of the last changes of packages: when, by which command, and sudo's user.
_PACKAGES = (
    "grep -hE '^(Start-Date|Commandline|Requested-By|Install|Upgrade|Downgrade|Remove|Purge):'"
    " /var/log/apt/history.log | tail -n 60 | cut -c1-2000"
)
_SUDO = "journalctl -q --no-pager -o short-unix -t sudo -n 40 | grep COMMAND= | cut -c1-300"

SEALED_ONCE = frozenset({"entry", "account"})
"""Kinds of items that no role writes, and whose first seal counts."""
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
    """A change from a log of the node."""

    at: str
    """As in the log."""
    who: str
    what: str


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a node's query."""

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
    """The output of the scheduler's shell lines; "" where they were not run."""


def observe_script(traces: Traces, scheduler: str) -> str:
    """Return the program, for root's sh, that queries one node."""
    paths = " ".join(f"'{path}'" for path in (*traces.paths, *traces.blocks))
    parts = [
        "PATH=$PATH:/usr/sbin:/sbin; exec 2>/dev/null",
        f"echo '=== stamps'; ( {stamps.READ} )",
        f"echo '=== seals'; cd {seals.DIRECTORY} && {{ stat -c 'at %Y %n' *; grep -H . *; }}",
        f"echo '=== now'; {seals.read_seals_command(traces)}",
        f"echo '=== touched'; stat -c '%Y %n' {paths}",
        "echo '=== health'; cat /run/gcluster/node-health.json; echo",
        f"echo '=== packages'; {_PACKAGES}",
        f"echo '=== sudo'; {_SUDO}",
    ]
    if scheduler:
        parts.append(f"echo '=== scheduler'; {scheduler}")
    return "\n".join([*parts, f"echo '{_END}'\n"])


def read_report(text: str) -> NodeReport | Unreachable:
    """Read what a node printed; one that was cut short is no answer."""
    if not text.endswith(f"{_END}\n"):
        return Unreachable(reason="its answer was cut short")
    parts = _SECTION.split(text)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    carried: Stamps | Unreachable = stamps.parse(sections.get("stamps", ""))
    if isinstance(carried, Unreachable):
        return carried
    return NodeReport(
        stamps=carried,
        seals=_seals(sections.get("seals", "")),
        now=dict(_parsed_items(sections.get("now", ""))),
        touched=_touched(sections.get("touched", "")),
        health=_parsed_health(sections.get("health", "")),
        packages=_packages(sections.get("packages", "")),
        commands=tuple(_commands(sections.get("sudo", ""))),
        scheduler=sections.get("scheduler", "").removesuffix(f"{_END}\n"),
    )


def _parsed_items(text: str) -> list[tuple[Item, str]]:
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


def _parsed_health(text: str) -> dict[str, Any]:
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


_FABRIC = frozenset({"link"})
_FABRIC_REASONS = ("gpu-", "nvlink-", "nic-", "pcie-", "ecc-", "row-", "xid")
"""How reasons of node_health begin that are about GPUs and links (docs/node-health.md)."""
_SECRET = frozenset({"entry", "file", "block"})
"""Kinds whose value is the hash of a content."""
_ALIVE = frozenset({"active", "activating", "reloading"})
_NEAR_S = 90
"""Seconds between a use of sudo and the change that it is taken to have made."""


class NodeFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What one node's answer comes to."""

    drifts: tuple[Drift, ...] = ()
    behind: tuple[Behind, ...] = ()
    unsealed: int = 0
    """Steps that leave something and have no seal."""


def judge(
    host: str, wanted: Mapping[str, tuple[Step, str]], report: NodeReport, *, cluster: str
) -> NodeFindings:
    """Return what differs on a node.

    Args:
        host: its name.
        wanted: step -> the step and the stamp that it leaves, in the order they run.
        report: its answer.
        cluster: name for the commands in hints.
    """
    people: set[str] = set()
    written: set[str] = set()
    for step, _ in wanted.values():
        left = traces_of(step)
        people |= set(left.users)
        written |= {*left.paths, *left.blocks}
    drifts, behind = _stamps(host, {step: digest for step, (_, digest) in wanted.items()}, report)
    unsealed = 0
    owners: dict[Item, tuple[str, Seal]] = {}
    keys: set[str] = set()
    for name, (step, _) in wanted.items():
        traces = traces_of(step)
        keys |= set(traces.keys)
        if traces == Traces() or name not in report.stamps:
            continue
        seal = report.seals.get(name)
        if seal is None or seal.digest != report.stamps[name] != WORN:
            unsealed += 1
            continue
        for item in _items(traces, seal, report.now):
            if item not in owners or owners[item][1].at <= seal.at:
                owners[item] = name, seal
    for item, (name, seal) in owners.items():
        if _is_ours(item, people, written):
            continue
        drift = _compared(host, item, seal.items.get(item), report.now.get(item), keys)
        if drift is not None:
            with_author = _with_author(drift, seal, report)
            hint = _by_hand(with_author, cluster)
            drifts.append(
                msgspec.structs.replace(with_author, hint=hint)
                if hint
                else msgspec.structs.replace(with_author, steps=_again(name, wanted), fixable=True)
            )
    return NodeFindings(
        drifts=tuple(_ordered([*drifts, *_health(host, report)])),
        behind=tuple(behind),
        unsealed=unsealed,
    )


def _stamps(
    host: str, wanted: Mapping[str, str], report: NodeReport
) -> tuple[list[Drift], list[Behind]]:
    """Distinguish stamps that were changed by hand from steps that are merely not done yet."""
    drifts: list[Drift] = []
    behind: list[Behind] = []
    for step, digest in wanted.items():
        carried, seal = report.stamps.get(step), report.seals.get(step)
        if carried == digest:
            continue
        if carried == WORN:
            behind.append(Behind(host=host, step=step, reason="the node was started again since"))
        elif carried is None and seal is None:
            behind.append(Behind(host=host, step=step, reason="never done here"))
        elif seal is None or carried == seal.digest:
            behind.append(Behind(host=host, step=step, reason="its inputs are others now"))
        else:
            drifts.append(
                Drift(
                    plane="node",
                    where=host,
                    kind="stamp",
                    name=step,
                    was="as its seal says",
                    now="removed" if carried is None else "another",
                    steps=_again(step, wanted),
                    fixable=True,
                )
            )
    return drifts, behind


def _again(step: str, wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the step and those that verify it: joining and verifying of its role."""
    role = step.partition(".")[0]
    later = tuple(f"{role}.{phase}" for phase in ("join", "verify"))
    return (step, *(name for name in later if name in set(wanted) and name != step))


def _items(traces: Traces, seal: Seal, now: Mapping[Item, str]) -> Iterator[Item]:
    """Yield what was, or is, there of what a step leaves."""
    names = {
        "file": set(traces.paths),
        "mode": set(traces.paths),
        "block": set(traces.blocks),
        "mount": set(traces.mounts),
        "unit": set(traces.units),
        "user": set(traces.users),
    }
    yield from seal.items
    once = {kind for kind, _ in seal.items if kind in SEALED_ONCE}
    for kind, name in now.keys() - seal.items.keys():
        if name in names.get(kind, ()) or (kind in once and _is_watched(kind, name, traces)):
            yield kind, name


def _is_watched(kind: str, name: str, traces: Traces) -> bool:
    """Return whether a step manages an entry, or an account, that its seal lacks."""
    if kind == "account":
        return traces.accounts
    return any(fnmatchcase(name, pattern) for pattern in traces.watched)


def _is_ours(item: Item, people: Collection[str], written: Collection[str]) -> bool:
    """Return whether a role writes what is watched: its own seal has the expected value."""
    kind, name = item
    if kind == "account":
        return name.rpartition(":")[2] in people
    return kind == "entry" and name in written


def _compared(
    host: str, item: Item, was: str | None, now: str | None, keys: Iterable[str]
) -> Drift | None:
    kind, name = item
    if was == now or (kind == "unit" and _still_runs(was, now)):
        return None
    if kind in SEALED_ONCE and now is None:
        return None  # a removed entry lets no one log in
    if kind == "mode" and (was is None or now is None):
        return None  # reported of the file itself
    shown = kind not in _SECRET
    return Drift(
        plane="fabric" if kind in _FABRIC else "node",
        where=host,
        kind="key" if kind == "file" and name in set(keys) else kind,
        name=name,
        was=(was or "") if shown else "",
        now="gone" if now is None else now if shown else ("another" if was else "new here"),
    )


def _by_hand(drift: Drift, cluster: str) -> str:
    """Return what a person does about it; "" where the step that left it fixes it."""
    match drift.kind:
        case "entry" | "account":
            return _stranger(drift, cluster)
        case "link":
            return "look at its cable, port and switch"
        case "sysctl" if drift.was:
            return f"on the node: sysctl -w {drift.name}='{drift.was.replace(',', ' ')}'"
        case "kernel":
            return f"restart it into the right kernel: gcluster reboot {cluster} {drift.where}"
        case "mount" if drift.now != "gone":
            return f"on the node: umount {drift.name}" if not drift.was else "mount it as it was"
        case _:
            return ""


def _stranger(drift: Drift, cluster: str) -> str:
    """Return what is done about something that no role wrote and that decides who gets in."""
    keep = f"if it is yours: gcluster drift {cluster} --accept {drift.where}:{drift.name}"
    if drift.was or (drift.kind == "entry" and drift.now == "another"):
        return f"no role wrote it; look at it on the node, and {keep}"
    group, _, member = drift.name.rpartition(":")
    if drift.kind == "entry":
        away = f"rm {drift.name}"
    else:
        away = f"gpasswd --delete {member} {group}" if group else f"userdel {drift.name}"
    return f"not from gcluster: {away} on the node; {keep}"


def _still_runs(was: str | None, now: str | None) -> bool:
    """Return whether a unit is in its sealed state: enabled alike, and running if it ran."""
    if was is None or now is None:
        return False
    (enabled, state), (enabled_now, state_now) = was.split(",", 1), now.split(",", 1)
    return enabled == enabled_now and (state != "active" or state_now in _ALIVE)


def _with_author(drift: Drift, seal: Seal, report: NodeReport) -> Drift:
    """Add when and by whom, as far as the node's logs show."""
    change = msgspec.structs.replace
    if drift.kind == "package":
        touched = [c for c in report.packages if drift.name in c.what]
        last = touched[-1] if touched else None
        return drift if last is None else change(drift, when=last.at, who=last.who)
    at = report.touched.get(drift.name)
    if at is None or (at <= seal.at and drift.kind != "mode"):
        near = [
            (t, u) for t, u, command in report.commands if drift.name in command and t > seal.at
        ]
        return drift if not near else change(drift, when=stamp_of(near[-1][0]), who=near[-1][1])
    users = [user for t, user, _ in report.commands if abs(t - at) <= _NEAR_S]
    return change(drift, when=stamp_of(at), who=users[-1] if users else "")


def _health(host: str, report: NodeReport) -> Iterator[Drift]:
    """Yield what the node's health check found: its report is at most some minutes old."""
    if report.health.get("verdict") == "unfit":
        reason = str(report.health.get("reason", "unfit"))
        yield Drift(
            plane="fabric" if reason.startswith(_FABRIC_REASONS) else "node",
            where=host,
            kind="health",
            name="node-health",
            was="fit",
            now=reason,
            when=str(report.health.get("time", "")),
            hint="docs/node-health.md says what to do; then gcluster repair NODE",
        )


def _ordered(drifts: Iterable[Drift]) -> list[Drift]:
    return sorted(drifts, key=lambda drift: (drift.plane, drift.kind, drift.name))
