"""Jobs and nodes by what they waste, and links of the network, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ....lifecycle.status.waste.links import LinkUse
from ....lifecycle.status.waste.now import JobUse, NodeUse, Now
from ...console import Console, Tone, printable
from ..quantities import duration, plural
from ..table import Column, tabulate

UNKNOWN, NONE = "?", "-"
SIMULATED = (
    "GPUs are simulated: their figures are made up by a double, SM is from the jobs' processes"
)
_POOR, _FAIR = 0.5, 0.8
"""SM active from which on a GPU is not used, or used well (NVIDIA's DCGM user guide)."""
_JOBS = (
    Column("job", right=False),
    Column("name", right=False, least=8, may_go=3),
    Column("account", right=False, least=8),
    Column("user", right=False, least=6),
    Column("pool", right=False, may_go=6, least=6),
    Column("running", may_go=5),
    Column("GPUs"),
    Column("idle", may_go=2),
    Column("untouched", may_go=4),
    Column("SM"),
    Column("tensor", may_go=1),
    Column("$/h"),
    Column("wasted $/h"),
)
_NODES = (
    Column("node", right=False),
    Column("pool", right=False, may_go=2),
    Column("state", right=False),
    Column("GPUs"),
    Column("free", may_go=1),
    Column("SM"),
    Column("$/h"),
    Column("unused $/h"),
)
_LINKS = (
    Column("link", right=False),
    Column("device", right=False),
    Column("state", right=False),
    Column("lost in 1 h"),
    Column("MB/s"),
)
_AROUND = 13
"""Lines around the tables: headline, titles, notes."""
_FEW_LINKS = 3
"""What a screen has of them; of others that are down it says how many."""


def top_text(now: Now, console: Console, *, rows: int | None = None, height: int = 0) -> str:
    """Return it as text.

    Args:
        now: what was read.
        console: what it is written on.
        rows: most jobs and nodes; None: all, or as many as fit.
        height: lines of the screen; 0: it may be longer.
    """
    jobs, nodes, links = list(now.jobs), list(now.nodes), list(now.links)
    shown_links = links[:rows]
    if rows is None and height:
        shown_links = links[:_FEW_LINKS]
        room = max(height - _AROUND - len(shown_links), 4)
        rows = max(room // 2, room - len(nodes)) if len(jobs) > room // 2 else len(jobs) or 1
        shown_jobs, shown_nodes = jobs[:rows], nodes[: max(room - min(rows, len(jobs)), 2)]
    else:
        shown_jobs, shown_nodes = jobs[:rows], nodes[:rows]
    lines = [*_headline(now, console), ""]
    none = "no job holds GPUs" if now.knows_jobs else "its jobs aren't known"
    lines += _table(_JOBS, [_job(job, console) for job in shown_jobs], console, none)
    lines += _more(len(jobs) - len(shown_jobs), "job")
    lines += ["", *_table(_NODES, [_node(n, console) for n in shown_nodes], console, "no nodes")]
    lines += _more(len(nodes) - len(shown_nodes), "node")
    if links:
        lines += ["", *_table(_LINKS, [_link(link, console) for link in shown_links], console, "")]
        lines += _more(sum(not link.up for link in links[len(shown_links) :]), "lost link")
    notes = [*_notes(now)]
    lines += ["", *notes] if notes else []
    return console.plain("\n".join(lines))


def money(value: float | None) -> str:
    """Return dollars with cents; what isn't known is a question mark, never 0."""
    return UNKNOWN if value is None else f"{value:,.2f}"


def percent(value: float | None) -> str:
    """Return a share as a percentage, likewise."""
    return UNKNOWN if value is None else f"{value:.0%}"


def _headline(now: Now, console: Console) -> Iterator[str]:
    at = datetime.fromtimestamp(now.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"{console.paint('strong', printable(now.cluster))}   {console.paint('faint', at)}"
    if now.usd_per_hour is None:
        yield "what its nodes cost isn't known"
        return
    parts = [f"${money(now.usd_per_hour)}/h"]
    if now.held_usd_per_hour is not None:
        parts.append(f"${money(now.held_usd_per_hour)} held by jobs")
    wasted = now.wasted_usd_per_hour
    if wasted is not None:
        parts.append(console.paint("error" if wasted else "good", f"${money(wasted)} wasted"))
    parts += [
        f"${money(usd)} {state}" for state, usd in sorted(now.unused_usd_per_hour.items()) if usd
    ]
    yield ", ".join(parts)


def _job(job: JobUse, console: Console) -> list[str]:
    unmeasured = "*" if job.measured_gpus < job.gpus else ""
    return [
        printable(job.job),
        printable(job.name),
        printable(job.account),
        printable(job.user),
        printable(",".join(job.pools)) or UNKNOWN,
        UNKNOWN if job.running_s is None else duration(job.running_s),
        f"{job.gpus:g}{unmeasured}",
        _count(job.idle_gpus),
        _count(job.untouched_gpus),
        _painted(job.active, console),
        percent(job.tensor),
        money(job.usd_per_hour),
        money(job.wasted_usd_per_hour),
    ]


def _count(gpus: float | None) -> str:
    return NONE if gpus is None else f"{gpus:g}"


def _painted(active: float | None, console: Console) -> str:
    if active is None:
        return UNKNOWN
    tone: Tone = "error" if active < _POOR else "warning" if active < _FAIR else "good"
    return console.paint(tone, percent(active))


def _node(node: NodeUse, console: Console) -> list[str]:
    out = node.state in {"drained", "down"}
    return [
        printable(node.name),
        printable(node.pool),
        console.paint("warning", node.state) if out else node.state or NONE,
        NONE if node.gpus is None else str(node.gpus),
        NONE if node.free is None else percent(node.free),
        NONE if node.active is None else percent(node.active),
        money(node.usd_per_hour),
        NONE if not node.state else money(node.unused_usd_per_hour),
    ]


def _link(link: LinkUse, console: Console) -> list[str]:
    traffic = link.bytes_per_s
    return [
        printable(link.node),
        printable(link.device),
        "up" if link.up else console.paint("error", "down"),
        console.paint("warning", str(link.lost)) if link.lost else "0",
        NONE if traffic is None else f"{traffic / 1e6:,.1f}",
    ]


def _table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], console: Console, none: str
) -> list[str]:
    return list(tabulate(columns, rows, console).lines) if rows else [none]


def _more(number: int, noun: str) -> list[str]:
    return [f"... and {plural(number, noun)} more"] if number > 0 else []


def _notes(now: Now) -> Iterator[str]:
    if now.simulated:
        yield SIMULATED
    if any(job.measured_gpus < job.gpus for job in now.jobs):
        yield "* some of its GPUs aren't measured"
    if now.unpriced_pools:
        pools = ", ".join(map(printable, now.unpriced_pools))
        yield f"? the price of {pools} isn't known (gcluster cost)"
    yield from map(printable, now.problems)
    if now.link:
        yield f"dashboards: {printable(now.link)}"
        if now.jobs:
            yield f"the first job's: {printable(now.jobs[0].link)}"
