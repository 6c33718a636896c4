"""A replayed trace and a decided queue, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from ....lifecycle.operations.burst.explain import Explained
from ....lifecycle.operations.burst.policy import WORDS, Decision
from ....lifecycle.operations.burst.saved_queue import Tried
from ....lifecycle.operations.burst.simulate.report import CloudUse, Simulation, Waits
from ...console import Console, printable
from ..quantities import duration, plural
from ..table import Column, tabulate

_WAITS = (
    Column("WAIT", right=False),
    Column("JOBS"),
    Column("MEAN"),
    Column("MEDIAN"),
    Column("95 %"),
    Column("LONGEST"),
)


def simulation_text(found: Simulation, console: Console) -> str:
    """Return what a replay came to: waits, both sides, who didn't move, what was assumed."""
    where = f"{plural(found.jobs, 'job')} on partition {found.partition}"
    used = f"in use for {found.home.utilisation:.1%} of the time"
    lines = [
        f"{printable(found.trace)}: {where}, {found.days:,.1f} days",
        "",
        *_waits(found, console),
        "",
        f"home:  {plural(found.home.nodes, 'node')} {used}",
        *_cloud(found.cloud),
    ]
    if found.refused:
        lines += ["", "could run nowhere:", *_words(found.refused)]
    if found.cloud is not None and found.cloud.stayed:
        lines += ["", "waited long enough and ran at home, by what last held them:"]
        lines += _words(found.cloud.stayed)
    lines += ["", *(console.paint("faint", line) for line in _assumed(found))]
    return console.plain("\n".join(lines))


def _waits(found: Simulation, console: Console) -> list[str]:
    rows = [_row("all jobs", found.waits)]
    if found.cloud is not None:
        rows += [_row("  at home", found.waits_home), _row("  spilled", found.waits_cloud)]
    if found.waits_without is not None:
        rows.append(_row("without spill", found.waits_without))
    return tabulate(_WAITS, rows, console).lines


def _row(title: str, waits: Waits) -> list[str]:
    figures = (waits.mean, waits.p50, waits.p95, waits.max)
    return [title, f"{waits.jobs:,}", *(duration(figure) for figure in figures)]


def _cloud(cloud: CloudUse | None) -> Iterator[str]:
    if cloud is None:
        yield "cloud: jobs of this partition don't spill"
        return
    used = "" if cloud.utilisation is None else f", {cloud.utilisation:.1%} of that with a job"
    yield (
        f"cloud: {plural(cloud.jobs, 'job')} spilled to {cloud.pool}, {cloud.returned:,} went back "
        "before they started"
    )
    yield (
        f"       {cloud.node_hours:,.0f} node hours{used}; at most {cloud.peak_nodes} of "
        f"{plural(cloud.most_nodes, 'node')}"
    )
    if cloud.usd is None:
        yield "       cost unknown: a price isn't known"
    else:
        yield (
            f"       ${cloud.usd:,.2f}; at most ${cloud.peak_usd_per_hour:,.2f}/h and "
            f"${cloud.peak_usd_per_day:,.2f} a day"
        )


def _words(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each reason: how many jobs, its word, and what would have to hold."""
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        meaning = "they are larger than home, and don't spill"
        if word in WORDS:
            meaning = f"not so: {WORDS[word]}"
        yield f"  {count:>7,}  {word:<9} {meaning}"


def _assumed(found: Simulation) -> Iterator[str]:
    yield (
        f"assumed: {found.processors_per_node} processors of the trace ({found.processor}) are a "
        f"node, a rented one takes {duration(found.boot_s)} to run jobs"
    )
    if found.unlimited:
        yield f"{plural(found.unlimited, 'job')} without a limit: the run time is used"
    if found.cut:
        yield f"{plural(found.cut, 'job')} ran over the limit: they end there"
    for why, count in found.left_out.items():
        yield f"{plural(count, 'line')} left out: {why}"


def round_text(found: Tried, console: Console) -> str:
    """Return a decided queue: each job with every reason for and against."""
    lines = [line for decision in found.decisions for line in _decision(decision, found, console)]
    spilling = sum(decision.spills for decision in found.decisions)
    total = plural(len(found.decisions), "job")
    lines.append(f"{spilling} of {total} of {found.partition} would spill to {found.pool}")
    return console.plain("\n".join(lines))


def explained_text(found: Explained, console: Console) -> str:
    """Return why a job of a running cluster spills or stays, and what has become of it."""
    lines = [f"job {printable(found.job)}, partition {printable(found.partition)}"]
    if found.moved is not None:
        lines.append(f"moved to {found.moved.to}: {printable(found.moved.reason)}")
    for node in found.nodes:
        how = f", bought as {node.option}" if node.option else ""
        why = f": {printable(node.reason)}" if node.reason else ""
        lines.append(f"  {node.node} {node.step}{how}{why}")
    if found.closed:
        lines.append(f"nothing spills to {found.pool} now: {printable(found.closed)}")
    if found.decision is None:
        lines.append("it doesn't wait in a partition whose jobs spill")
    else:
        tried = Tried(
            partition=found.partition,
            pool=found.pool or "",
            decisions=(found.decision,),
            promise=found.promise,
        )
        lines += _decision(found.decision, tried, console)
    return console.plain("\n".join(lines).rstrip("\n"))


def _decision(decision: Decision, found: Tried, console: Console) -> Iterator[str]:
    name = printable(decision.job)
    if decision.spills:
        nodes = plural(decision.new_nodes, "new node")
        idle = f" and {len(decision.reuses)} idle" if decision.reuses else ""
        cost = decision.adds_usd_per_hour
        adds = "at a price that isn't known" if cost is None else f"for ${cost:,.2f}/h at most"
        how = (
            f", bought as {', '.join(decision.purchase_options)}"
            if decision.purchase_options
            else ""
        )
        yield f"{console.paint('good', name)} spills to {found.pool}: {nodes}{idle} {adds}{how}"
        if decision.stage:
            yield f"  staged first: {', '.join(decision.stage)}"
    else:
        final = ", and always will as it is" if decision.is_final else ""
        yield f"{console.paint('warning', name)} stays{final}"
        if found.promise is not None and found.promise.job == decision.job:
            yield f"  has its room at the latest at {_moment(found.promise.at)}"
    for reason in decision.reasons:
        mark = console.paint("good", "✔") if reason.holds else console.paint("error", "✘")
        yield f"  {mark} {reason.word:<9} {printable(reason.text)}"
    yield ""


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%MZ")
