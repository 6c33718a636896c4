"""The end of `up` and `down`, and what their preflight found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from ....lifecycle.cluster.outcome import Exit
from ....lifecycle.down.down import DownResult
from ....lifecycle.planning.changes import SiteAnswers
from ....lifecycle.up.phase import UpResult
from ....schemas.derived.hostlist import fold
from ....schemas.diagnostics import Severity
from ....stacks.provider import Leftover
from ...console import Console, printable
from ..diagnostics import diagnostics_text, summary_line
from ..quantities import counts, plural, usd_per_hour


def nearby(path: str) -> str:
    """Return a path as a person here would type it: relative when it lies below this folder."""
    here = f"{Path.cwd()}/"
    return path.removeprefix(here)


def up_text(result: UpResult, target: str, console: Console) -> str:
    """Return what is shown below the stages.

    Args:
        result: how it ended.
        target: what the person called the cluster, for the command that goes on.
        console: what it is written on.
    """
    lines = []
    if result.certificate_path is not None:
        passed = result.exit_code is Exit.OK
        mark = console.paint("good", "✔") if passed else console.paint("error", "✘")
        lines.append(f"{mark} certificate {nearby(result.certificate_path)}")
    if result.diagnostics:
        lines += ["", diagnostics_text(result.diagnostics, console)]
    message = " ".join(d.summary for d in result.diagnostics)
    unmentioned = {host: why for host, why in result.failed_hosts.items() if host not in message}
    lines += [
        f"{console.paint('error', '✘')} {host} was left behind: {printable(why)}"
        for host, why in unmentioned.items()
    ]
    lines += [
        f"{console.paint('warning', '!')} {host} is out of service: {printable(why) or 'no reason'}"
        for host, why in result.out_of_service.items()
    ]
    lines += ["", _next_steps(result, target, console)]
    return console.plain("\n".join(lines))


_UNPROVEN = "GC1173"
"""Too few nodes were idle for the AllReduce: all else was done."""


def _next_steps(result: UpResult, target: str, console: Console) -> str:
    name = result.cluster
    if result.exit_code is Exit.OK:
        behind = len(result.failed_hosts)
        without = f" without {plural(behind, 'node')}" if behind else ""
        if result.left_out:
            proof = "and not proven on" if behind else "but not proven on"
            without += f", {proof} {result.left_out}: drained, busy or not fit for jobs"
        if result.out_of_service:
            without += f" without {fold(result.out_of_service)}"
        proven = "ready" if result.verdict is not None else "up, and no AllReduce could be run"
        state = console.paint("strong", f"{name} is {proven}{without}.")
        repair = f"gcluster repair {name} · " if behind else ""
        return (
            f"{state}   {repair}gcluster ssh {name} · gcluster status {name} · gcluster down {name}"
        )
    if any(each.code == _UNPROVEN for each in result.diagnostics):
        state = console.paint("warning", f"{name} is up, and nothing proves it yet.")
        return f"{state}   gcluster status {name} · prove it with: gcluster smoke {name}"
    what = "failed its AllReduce" if result.exit_code is Exit.REFUSED else "is not up"
    state = console.paint("error", f"{name} {what}.")
    return f"{state}   gcluster status {name} · resume with: gcluster up {target}"


_LISTED = 40


def existing_text(existing: tuple[Leftover, ...], console: Console) -> str:
    """Return what there is to remove: data that goes, all else, and what is kept."""
    goes = [item for item in existing if not item.kept_data]
    lines = [item_line(console.paint("error", "-"), item) for item in goes if not item.storage]
    if len(lines) > _LISTED:
        lines = [*lines[:_LISTED], f"  and {len(lines) - _LISTED:,} more"]
    lines += [
        item_line(console.paint("error", "-"), item) + console.paint("error", "   data: DESTROYED")
        for item in goes
        if item.storage
    ]
    lines += [item_line(" ", item) + f"   {_why(item)}" for item in existing if item.kept_data]
    kinds = Counter(item.kind for item in goes)
    lines.append(f"\n{counts(kinds)} to remove")
    return console.plain("\n".join(lines))


def down_text(result: DownResult, console: Console) -> str:
    """Return how it ended, with the counts."""
    lines = [
        f"site {site}: its machines were not made by gcluster and are left as they are"
        for site in result.untouched
    ]
    if result.nothing_there:
        lines.append(f"{result.cluster}: there is nothing to remove")
    else:
        lines.append(f"{result.cluster}: removed {counts(result.removed) or 'nothing'}")
    if result.leftovers:
        many = plural(len(result.leftovers), "leftover")
        lines.append(console.paint("error", f"{many} could not be removed:"))
        lines += [item_line(console.paint("error", "!"), item) for item in result.leftovers]
        lines.append(f"resume with: gcluster down {result.cluster}")
    elif not result.nothing_there:
        left = "nothing is left" if not result.kept else "nothing else is left"
        lines.append(f"looked again by its tag: {left}")
    lines += kept_lines(result.cluster, result.kept)
    return console.plain("\n".join(lines))


def kept_lines(cluster: str, kept: tuple[Leftover, ...]) -> list[str]:
    """Return what stays, what it costs, and how to remove it; none where nothing stays."""
    data = [item for item in kept if item.storage]
    around = Counter(item.kind for item in kept if not item.storage)
    if not kept:
        return []
    lines = ["kept:"] + [f"{item_line(' ', item)}   {_monthly(item)}" for item in data]
    if around:
        lines.append(f"    {counts(around)}{', which the data depends on' if data else ''}")
    names = dict.fromkeys(name for item in data for name in item.storage)
    words = " ".join(f"--delete-data {name}" for name in names)
    if words:
        lines.append(f"destroy it with: gcluster down {cluster} {words}")
    return lines


def _why(item: Leftover) -> str:
    return "data: kept" if item.storage else "kept: data depends on it"


def _monthly(item: Leftover) -> str:
    if item.usd_per_month is None:
        return "price not known: it is billed by what is in it"
    return f"${item.usd_per_month:,.2f}/month"


def item_line(mark: str, item: Leftover) -> str:
    """Return one thing with its mark in front and its price behind, where that is known."""
    price = "" if item.usd_per_hour is None else f"   {usd_per_hour(item.usd_per_hour)}"
    named = f" ({', '.join(item.storage)})" if item.storage else ""
    return f"  {mark} {item.kind} {printable(item.name)}{named}{price}"


_ORDER = list(Severity)


def preflight_text(answers: Iterable[SiteAnswers], console: Console) -> str:
    """Return the answers as text; a site without obstacles says so."""
    return "\n".join(line for site in answers for line in _site(site, console))


def _site(site: SiteAnswers, console: Console) -> Iterator[str]:
    title = f"preflight of {site.site} ({site.provider})"
    found = sorted(site.diagnostics, key=lambda found: _ORDER.index(found.severity))
    yield f"{console.paint('strong', title)}: {summary_line(found)}"
    if found:
        yield diagnostics_text(found, console)
