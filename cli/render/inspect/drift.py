"""Drift by plane: what differs, since when and by whom, and what fixes it; as text and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ....lifecycle.status.drift.fix import FixResult
from ....lifecycle.status.drift.values import Drift, DriftReport
from ....schemas.derived.hostlist import fold
from ...console import Console, printable
from ..diagnostics import diagnostics_text
from ..operate.operations import repair_lines
from ..quantities import plural

_PLANES = {
    "cloud": "sites",
    "node": "nodes",
    "fabric": "fabric",
    "scheduler": "scheduler",
}
_LISTED = 60
"""Lines of a plane that are shown; the rest is counted."""
_LONGEST = 60_000
"""Characters at most: a comment of GitHub holds 65,536."""


def drift_text(report: DriftReport, console: Console) -> str:
    """Return the report as text: plane by plane, alike things on several hosts as one line."""
    lines = [_verdict(report, console)]
    for plane, rows in _rows(report.drifts):
        lines.append(console.paint("strong", _PLANES[plane]))
        lines += [f"  {console.paint('warning', '~')} {row}" for row in rows[:_LISTED]]
        lines += [f"    and {len(rows) - _LISTED:,} more"] if len(rows) > _LISTED else []
    lines += [
        f"  {console.paint('error', '!')} {printable(name)}: {printable(why)} (not known)"
        for name, why in report.silent.items()
    ]
    lines += _notes(report)
    lines += repair_lines(report.cluster, report.repairs, console)
    if any(drift.fixable for drift in report.drifts):
        lines.append(f"fix it with: gcluster drift {report.cluster} --fix")
    return console.plain("\n".join(lines))


def drift_markdown(report: DriftReport) -> str:
    """Return the report as a comment; the same drift gives the same bytes, so it holds no ages."""
    plain = Console()
    lines = [
        f"<!-- gcluster drift: {report.cluster} -->",
        f"### gcluster drift: `{report.cluster}`",
        "",
        _verdict(report, plain).partition("   ")[0],
    ]
    for plane, rows in _rows(report.drifts):
        lines += ["", f"<details open><summary>{_PLANES[plane]}: {len(rows)}</summary>", ""]
        lines += [f"- {_escaped(row)}" for row in rows]
        lines += ["", "</details>"]
    if report.silent:
        lines += ["", "Not known, because they gave no answer:", ""]
        lines += [f"- {_escaped(f'{name}: {why}')}" for name, why in report.silent.items()]
    notes = [*_notes(report), *repair_lines(report.cluster, report.repairs, plain)]
    lines += ["", *(f"> {_escaped(note.strip())}" for note in notes)] if notes else []
    text = "\n".join(lines)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST].rpartition(chr(10))[0]}\n\n</details>\n\nToo long for a comment."


def fixed_text(result: FixResult, console: Console) -> str:
    """Return how fixing ended: what was fixed, and what still differs."""
    if result.after is None:
        return drift_text(result.before, console)
    lines = [diagnostics_text(result.diagnostics, console)] if result.diagnostics else []
    left = {_key(drift) for drift in result.after.drifts}
    fixed = [d for d in result.before.drifts if d.fixable and _key(d) not in left]
    for _, rows in _rows(fixed):
        lines += [f"  {console.paint('good', '✔')} {row}" for row in rows]
    lines += [
        f"  {console.paint('error', 'x')} {host}: {printable(why)}"
        for host, why in result.failed.items()
    ]
    return console.plain("\n".join([*lines, drift_text(result.after, console)]))


def accepted_text(drifts: Iterable[Drift]) -> str:
    """Return what was taken for what it is."""
    return "\n".join(f"{d.where}: {d.kind} {printable(d.name)} is known now" for d in drifts)


def _key(drift: Drift) -> tuple[str, str, str, str]:
    return drift.plane, drift.where, drift.kind, drift.name


def _verdict(report: DriftReport, console: Console) -> str:
    observed = f"{plural(report.hosts, 'node')} looked at in {report.seconds:.1f} s"
    if report.drifts:
        many = plural(len(report.drifts), "difference")
        headline = console.paint("warning", f"{report.cluster} has drifted: {many}")
        return f"{headline}   {console.paint('faint', observed)}"
    if report.silent:
        return f"{report.cluster}: nothing known has drifted   {console.paint('faint', observed)}"
    return f"{report.cluster} is as up left it   {console.paint('faint', observed)}"


def _rows(drifts: Iterable[Drift]) -> Iterator[tuple[str, list[str]]]:
    """Yield (plane, its lines); the same difference on several hosts is one line."""
    for plane, found in groupby(drifts, key=lambda drift: drift.plane):
        alike: dict[str, list[str]] = {}
        for drift in found:
            alike.setdefault(_line(drift), []).append(drift.where)
        yield plane, [f"{_where(hosts)}: {line}" for line, hosts in alike.items()]


def _where(hosts: list[str]) -> str:
    return printable(fold(hosts) if len(hosts) > 1 else hosts[0])


def _line(drift: Drift) -> str:
    parts = [part for part in (drift.who and f"by {drift.who}", drift.when) if part]
    was = f" (was {drift.was})" if drift.was else ""
    name = "" if drift.name == drift.where else f" {drift.name}"
    hint = f"; {drift.hint}" if drift.hint else ""
    since = f"   {', '.join(parts)}" if parts else ""
    return printable(f"{drift.kind}{name}: {drift.now}{was}{hint}{since}")


def _notes(report: DriftReport) -> list[str]:
    """Return what is no drift and should be known."""
    lines = []
    if report.behind:
        hosts = fold(sorted({item.host for item in report.behind}))
        steps = plural(len(report.behind), "step")
        lines.append(
            f"  {steps} on {hosts} not done as compiled now: gcluster plan {report.cluster}"
        )
    if report.unsealed:
        hosts = fold(sorted(report.unsealed))
        lines.append(
            f"  {hosts}: some steps were done before gcluster noted what they left; "
            "only their stamps are compared"
        )
    return lines


def _escaped(text: str) -> str:
    return (
        text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "&#96;")
    )
