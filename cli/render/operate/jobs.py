"""Jobs as text: the queue as a table, a job's states as lines, what it prints as it is."""

from __future__ import annotations

from collections.abc import Sequence

from ....lifecycle.scheduler.workloads.account import Gate, JobAccount, Price
from ....lifecycle.scheduler.workloads.jobs import Job, JobState
from ....lifecycle.scheduler.workloads.progress import Progress
from ...console import emit
from ..quantities import duration, plural, usd_per_hour


def jobs_text(jobs: Sequence[Job]) -> str:
    """Return the queue as a table."""
    if not jobs:
        return "no jobs"
    head = ("JOB", "NAME", "USER", "STATE", "TIME", "NODES", "WHERE OR WHY")
    rows = [
        (job.id, job.name, job.user, job.state.lower(), job.elapsed, job.nodes, job.reason)
        for job in jobs
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows))
    return "\n".join(lines)


def state_line(state: JobState, price: Price | None = None) -> str:
    """Return one line for a state of a job; with what it costs where that is money."""
    words = [f"job {state.id}: {state.state.lower()}"]
    if state.state == "PENDING" and state.reason not in {"", "None"}:
        words.append(f"({state.reason})")
    if state.batch_host and not state.is_over and state.state != "PENDING":
        words.append(f"on {state.nodes} node{'s' * (state.nodes != 1)} from {state.batch_host}")
    if state.is_over:
        words.append(f"after {state.elapsed}, exit code {state.exit_code}")
    if price is not None and price.usd_per_hour and state.state != "PENDING":
        words.append(f"at {usd_per_hour(price.usd_per_hour)}")
        if state.is_over:
            words.append(f"(${price.usd or 0:,.2f})")
    if state.restarts:
        words.append(f"- started again {state.restarts} time{'s' * (state.restarts != 1)}")
    return " ".join(words)


def progress_line(progress: Progress) -> str:
    """Return how a running job gets on: since when, how busy its GPUs are, what it cost so far."""
    state, use, price = progress.state, progress.use, progress.price
    words = [f"job {state.id}: runs for {state.elapsed}"]
    if use is not None:
        simulated = " (simulated)" if use.simulated else ""
        words.append(f"{plural(round(use.gpus), 'GPU')} {use.active:.0%} active{simulated}")
    elif progress.problem:
        words.append(f"use of GPUs isn't known: {progress.problem}")
    if price.usd:
        words.append(f"${price.usd:,.2f} so far")
    return ", ".join(words)


def account_text(account: JobAccount) -> str:
    """Return one job: its state, what it costs, what it did with its time."""
    job, price, goodput = account.job, account.price, account.goodput
    lines = [state_line(job)]
    if job.name:
        lines.append(f"name     {job.name} of {job.user}")
    spent = "" if price.usd is None else f", ${price.usd:,.2f} in this run"
    lines.append(f"cost     {usd_per_hour(price.usd_per_hour)}{spent}")
    if goodput is not None:
        hours = f"{goodput.useful / 3600:,.2f} of {goodput.paid / 3600:,.2f} node hours count"
        lines.append(f"goodput  {goodput.share:.0%}: {hours}")
        lines.extend(
            f"lost     {duration(each.seconds)}: {each.cause}" for each in goodput.interruptions
        )
        if goodput.uncopied:
            lines.append(f"copies   {goodput.uncopied}")
        lines.extend(f"gate     {gate_text(each)}" for each in goodput.gates)
    return "\n".join(lines)


def gate_text(gate: Gate) -> str:
    """Return the result of a gate."""
    if not gate.middle:
        return f"{gate.when} the job: no result"
    slow = f"slow: {', '.join(gate.slow)}" if gate.slow else "no node is slow"
    return f"{gate.when} the job: {slow} ({gate.middle:.2f} GB/s in the middle)"


def printed(text: str) -> None:
    """Write what a job printed."""
    emit(text.rstrip("\n"))
