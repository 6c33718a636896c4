"""What is there: status of a cluster, prerequisites, ledger, runs and their events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ....lifecycle.down.ledger_check import LedgerCheck
from ....lifecycle.planning.preflight.doctor import (
    KNOWN,
    Machine,
    Need,
    install_command,
    packages_for,
)
from ....lifecycle.state import RunRecord
from ....lifecycle.state.audit.history import RunView
from ....lifecycle.status.conditions import ClusterStatus, Condition, ElasticStatus, NodeStatus
from ...console import Console, Tone, pad, printable
from ..operate.operations import causes_lines, queue_lines, quota_lines, repair_lines
from ..operate.up import item_line, kept_lines
from ..quantities import bandwidth, duration, plural, usd_per_hour
from ..table import Column, tabulate

_MARKS: dict[str, tuple[str, Tone]] = {
    "true": ("✔", "good"),
    "false": ("✘", "error"),
    "unknown": ("?", "warning"),
}
_ILL = {True: "not well", False: "not up"}
"""Whether there are nodes -> what is said of a cluster of which a condition doesn't hold."""
_MANY = 24
"""Above this many nodes only those that need attention are listed, and the rest counted."""


def status_text(status: ClusterStatus, console: Console, *, now: datetime) -> str:
    """Return the status as text.

    Args:
        status: what was seen.
        console: what it is written on.
        now: the moment that "since" is counted to; aware.
    """
    tone: Tone = "good" if status.healthy else "error"
    well = console.paint(tone, "healthy" if status.healthy else _ILL[bool(status.nodes)])
    lines = [f"{console.paint('strong', status.cluster)}   {well}"]
    lines += [_condition(condition, console, now) for condition in status.conditions]
    if status.nodes:
        lines += ["", *_nodes(status.nodes, console, now)]
    if status.elastic:
        lines += ["", *_elastic(status.elastic, console, now)]
    if status.causes:
        lines += ["", *causes_lines(status.causes, console)]
    if status.queue is not None:
        lines += ["", *queue_lines(status.queue)]
    lines += quota_lines(status.quotas)
    if status.repairs:
        lines += ["", *repair_lines(status.cluster, status.repairs, console, now=now)]
    if status.certificate is not None:
        lines += [f"certificate  {_certificate(status.certificate, now)}"]
    if status.kept:
        lines += ["", *kept_lines(status.cluster, status.kept)]
    return console.plain("\n".join(lines))


def age(stamp: str, now: datetime) -> str:
    """Return how long ago an RFC 3339 stamp was, "" when it can't be read."""
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return ""
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return duration(max(0.0, (now - then).total_seconds()))


def _condition(condition: Condition, console: Console, now: datetime) -> str:
    mark, tone = _MARKS[condition.status]
    since = age(condition.since, now) if condition.since else ""
    duration_text = console.paint("faint", f"for {since}") if since else ""
    reason = "   ".join(part for part in (printable(condition.reason), duration_text) if part)
    return f"  {console.paint(tone, mark)} {pad(condition.name, 16)} {reason}".rstrip()


def _nodes(nodes: tuple[NodeStatus, ...], console: Console, now: datetime) -> Iterator[str]:
    listed = nodes if len(nodes) <= _MANY else tuple(n for n in nodes if not _fit(n))
    rows = [
        row if _fit(node) else tuple(console.paint("error", cell) for cell in row)
        for node, row in ((node, _row(node, now)) for node in listed)
    ]
    if rows:
        titles, *lines = tabulate(_COLUMNS, rows, console, indent=2).lines
        yield from (console.paint("faint", titles), *lines)
    if len(listed) < len(nodes):
        yield f"  {len(nodes) - len(listed):,} more nodes, all fit"


_COLUMNS = (
    *(Column(title, right=False) for title in ("NODE", "ROLE", "POOL", "ADDRESS", "STATE")),
    Column("NOTE", right=False, wraps=True),
)


def _fit(node: NodeStatus) -> bool:
    return node.reachable and not node.reason and not node.steps_pending


def _row(node: NodeStatus, now: datetime) -> tuple[str, ...]:
    pending = f"{node.steps_pending} steps to run" if node.steps_pending else ""
    unreached = "" if node.reachable or node.reason else "no answer"
    since = f"for {age(node.out_since, now)}" if node.out_since else ""
    note = ", ".join(part for part in (printable(node.reason), since, unreached, pending) if part)
    state = node.scheduler_state or ("up" if node.reachable else "-")
    return node.name, node.role, node.pool, node.address or "-", state, note


_ELASTIC_COLUMNS = (
    *(Column(title, right=False) for title in ("ELASTIC", "POOL", "SITE", "STATE", "SCHEDULER")),
    Column("NOTE", right=False, wraps=True),
)


def _elastic(nodes: tuple[ElasticStatus, ...], console: Console, now: datetime) -> Iterator[str]:
    """Yield the nodes that have a machine or a reason not to; the others are counted."""
    listed = tuple(node for node in nodes if node.state != "off" or node.reason)
    if listed:
        rows = [_elastic_row(node, now) for node in listed]
        titles, *lines = tabulate(_ELASTIC_COLUMNS, rows, console, indent=2).lines
        yield from (console.paint("faint", titles), *lines)
    if off := len(nodes) - len(listed):
        yield f"  {off:,} more, off" if listed else f"  {plural(off, 'elastic node')}, off"


def _elastic_row(node: ElasticStatus, now: datetime) -> tuple[str, ...]:
    since = f"requested {age(node.requested, now)} ago" if node.requested else ""
    note = ", ".join(part for part in (printable(node.reason), since) if part)
    state = (node.site or "-", node.state, node.scheduler_state or "-")
    return node.name, node.pool, *state, note


def _certificate(certificate: dict[str, Any], now: datetime) -> str:
    verdict = certificate.get("verdict")
    verdict = verdict if isinstance(verdict, dict) else {}
    busbw, taken = verdict.get("busbw"), age(str(certificate.get("time", "")), now)
    facts = [str(verdict.get("verdict", "unknown"))]
    facts += [f"{bandwidth(busbw)} busbw"] if isinstance(busbw, int | float) else []
    facts += [f"{taken} ago"] if taken else []
    return printable(", ".join(facts))


def doctor_report(machine: Machine, found: list[Need]) -> dict[str, Any]:
    """Return what both forms have; the JSON form is this value."""
    packages = _packages(machine, found)
    return {
        "ok": not any(need.required and not need.present for need in found),
        "distribution": machine.distribution,
        "cgroups": "v2" if machine.pure_cgroup_v2 else "hybrid or v1",
        "needs": found,
        "packages": packages,
        "install": install_command(packages, root=machine.root),
    }


def doctor_text(
    machine: Machine, found: list[Need], console: Console, *, what: str = "local clusters"
) -> str:
    """Return the report as text; `what` is what could or couldn't be brought up."""
    columns = (Column(right=False), Column(right=False, wraps=True))
    lines = tabulate(columns, [_doctor_row(need, console) for need in found], console).lines
    packages = _packages(machine, found)
    lacking = [need for need in found if not need.present]
    stops = [need for need in lacking if need.required]
    if packages and machine.distribution in KNOWN:
        lines += ["", f"install: {install_command(packages, root=machine.root)}"]
    elif packages:
        names = " ".join(packages)
        lines += ["", f"install these (Debian's names; this is {machine.distribution}): {names}"]
    lines += ["", _verdict(stops, lacking, console, what)]
    return console.plain("\n".join(lines))


def _packages(machine: Machine, found: list[Need]) -> tuple[str, ...]:
    return packages_for([need for need in found if not need.present], machine.distribution)


def _doctor_row(need: Need, console: Console) -> tuple[str, str]:
    mark = console.paint("good", "✔")
    if not need.present:
        mark = console.paint("error", "✘") if need.required else console.paint("warning", "?")
    more = f"   {need.command}" if need.command and not need.present else ""
    return f"{mark} {need.name}", f"{need.why}{more}"


def _verdict(stops: list[Need], lacking: list[Need], console: Console, what: str) -> str:
    if stops:
        names = ", ".join(need.name for need in stops)
        return console.paint("error", f"{what} can't be brought up here: {names} missing")
    well = console.paint("good", f"{what} can be brought up here")
    return f"{well}; worth a look: {', '.join(n.name for n in lacking)}" if lacking else well


def ledger_text(check: LedgerCheck, console: Console) -> str:
    """Return the check as text: the verdict first."""
    lines = [_ledger_verdict(check, console), *_leftovers(check, console)]
    lines += [
        f"  ? {printable(gone.key)} of site {gone.site}: in the ledger, and not there "
        f"({printable(gone.provider_id)})"
        for gone in check.absent
    ]
    lines += kept_lines(check.cluster, check.kept)
    return console.plain("\n".join(lines))


def _ledger_verdict(check: LedgerCheck, console: Console) -> str:
    observed = f"{plural(check.listed, 'thing')} with its tag"
    silent = ", ".join(check.silent)
    if check.leftovers:
        many = plural(len(check.leftovers), "leftover")
        price = usd_per_hour(check.usd_per_hour)
        if check.usd_per_hour is None and check.known_usd_per_hour:
            price = f"{usd_per_hour(check.known_usd_per_hour)} and more: prices are unknown"
        return console.paint("error", f"{check.cluster}: {many} of {observed}, {price}")
    if silent:
        return console.paint("error", f"{check.cluster}: unknown, {silent} can't be queried")
    return f"{check.cluster}: {observed}, none of it left over"


def _leftovers(check: LedgerCheck, console: Console) -> Iterator[str]:
    for stray in check.leftovers:
        line = item_line(console.paint("error", "!"), stray.item)
        price = "   price unknown" if stray.item.usd_per_hour is None else ""
        yield f"{line}{price}   site {stray.site}: {printable(stray.item.provider_id)}"
        yield f"      {stray.why}"
    if check.leftovers:
        yield f"remove them with: gcluster down {check.cluster}" + (
            "" if check.ended else "   (all of the cluster), or by hand at their site"
        )


_TONES: dict[str, Tone] = {"ok": "good", "running": "note"}


def history_text(runs: Iterable[RunRecord], console: Console) -> str:
    """Return a line for each run; says so where there was none."""
    lines = [_history_line(run, console) for run in runs]
    return console.plain("\n".join(lines) or "no run has changed this cluster yet")


def run_text(run_view: RunView, console: Console) -> str:
    """Return a run and its events, in order."""
    run = run_view.run
    commit = f" of commit {printable(run.commit)}" if run.commit else ""
    why = f", for {printable(run.why)}" if run.why else ""
    lines = [_history_line(run, console), f"  spec {run.spec_hash[:12]}{commit}{why}"]
    for event in run_view.events:
        data = " ".join(f"{key}={_value(value)}" for key, value in event.data.items())
        head = f"{event.time:%H:%M:%S}  {pad(event.kind, 18)}"
        lines.append(f"  {console.paint('faint', head)} {printable(data)}".rstrip())
    if run_view.has_artifacts:
        lines.append("  its logs: --artifacts FILE")
    return console.plain("\n".join(lines))


def _history_line(run: RunRecord, console: Console) -> str:
    outcome = run.outcome or run.state
    took = duration((run.ended - run.started).total_seconds()) if run.ended is not None else ""
    ended = f" (exit {run.exit_code})" if run.exit_code else ""
    shown = console.paint(_TONES.get(outcome, "error"), outcome)
    who = f"{run.started:%Y-%m-%d %H:%M} UTC  {pad(printable(run.actor), 24)}"
    return f"{pad(run.id, 24)} {who} {pad(run.command, 12)} {shown}{ended}  {took}".rstrip()


def _value(value: object) -> str:
    """Return a value on one line; lists and maps as how many they hold."""
    if isinstance(value, (list, dict)):
        return f"{len(value)} entries"
    return json.dumps(value, ensure_ascii=False)
