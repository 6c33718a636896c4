"""Whether a job could run in the pool at all, whatever runs there now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .commitments import Rent, over_day, over_hour
from .rule import DAY_S, HOUR_S, Rule
from .situation import PendingJob, Reason


class Staging(NamedTuple):
    """What is to be staged for a job."""

    storage: tuple[str, ...]
    seconds: float
    """Until all of it is there, at most: it is staged side by side."""


def lasting_reasons(
    rule: Rule, job: PendingJob, staging_s: Mapping[str, float]
) -> tuple[Reason, ...]:
    """Return what time and other jobs don't change."""
    leave = "it may leave" if job.may_leave else "it was submitted to stay"
    return (
        Reason("leave", job.may_leave, leave),
        *_kind(rule, job),
        *_size(rule, job),
        *_may_rent(rule, job),
        *(_data(rule, name, staging_s) for name in _needed(rule, job)),
        *_fits_budget(rule, job),
    )


def staging_of(rule: Rule, job: PendingJob, staging_s: Mapping[str, float]) -> Staging:
    """Return what is staged before a job whose data can be."""
    staged = {
        there.storage: staging_s.get(there.storage, there.stage_within)
        for name in _needed(rule, job)
        if (there := rule.target.data.get(name)) is not None and there.stage_within is not None
    }
    return Staging(tuple(staged), max(staged.values(), default=0.0))


def _needed(rule: Rule, job: PendingJob) -> tuple[str, ...]:
    return rule.needs if job.data is None else job.data


def _kind(rule: Rule, job: PendingJob) -> Iterator[Reason]:
    target = rule.target
    models = frozenset({job.gpu_model}) if job.gpu_model is not None else rule.gpu_models
    wanted = " or ".join(sorted(models)) or "GPUs"
    has = "no GPU" if target.gpu_model is None else f"{target.gpus_per_node} {target.gpu_model}"
    if job.gpus_per_node == 0:
        yield Reason("gpu", holds=True, text="it requests no GPU")
    else:
        fits = target.gpu_model in models and job.gpus_per_node <= target.gpus_per_node
        text = f"it needs {job.gpus_per_node} {wanted} a node, pool {target.pool} has {has}"
        yield Reason("gpu", fits, text)
    lacking = sorted(job.features - target.features)
    if job.features:
        text = f"no {', '.join(lacking)} there" if lacking else "its features are there"
        yield Reason("features", not lacking, text)
    if target.software_differs:
        yield Reason("software", holds=False, text=f"differs: {', '.join(target.software_differs)}")
    else:
        yield Reason("software", holds=True, text="the software is the same")


def _size(rule: Rule, job: PendingJob) -> Iterator[Reason]:
    most, where = rule.target.most, f"pool {rule.target.pool} has at most"
    if rule.max_nodes is not None and rule.max_nodes < most:
        most, where = rule.max_nodes, "only.max_nodes is"
    yield Reason("size", job.nodes <= most, f"it needs {plural(job.nodes)}, {where} {most}")
    limits = {
        f"partition {rule.partition}": rule.max_time,
        f"pool {rule.target.pool}": rule.target.max_time,
    }
    if job.qos is not None and job.qos in rule.qos_max_time:
        limits[f"QOS {job.qos}"] = rule.qos_max_time[job.qos]
    lasting = [option.runs_for for option in rule.target.purchase_options]
    if lasting and None not in lasting:
        limits["the market"] = max(each for each in lasting if each is not None)
    known = {who: limit for who, limit in limits.items() if limit is not None}
    requested = "no time limit" if job.time_limit is None else f"a limit of {hours(job.time_limit)}"
    if not known:
        yield Reason("time", holds=True, text=f"it has {requested}, and nothing limits it")
        return
    who = min(known, key=lambda name: known[name])
    fits = job.time_limit is not None and job.time_limit <= known[who]
    yield Reason("time", fits, f"it has {requested}, {who} allows {hours(known[who])}")


def _may_rent(rule: Rule, job: PendingJob) -> Iterator[Reason]:
    for word, name, allowed in (
        ("account", job.account, rule.accounts),
        ("qos", job.qos, rule.qos),
    ):
        noun = "QOS" if word == "qos" else word
        message = f"{noun} {name}" if name else f"no {noun}"
        if allowed is None:
            yield Reason(word, holds=True, text=f"every {noun} may spill")
        elif name in allowed:
            yield Reason(word, holds=True, text=f"{message} may spill")
        else:
            text = f"it has {message}, only {', '.join(sorted(allowed))} may spill"
            yield Reason(word, holds=False, text=text)


def _data(rule: Rule, name: str, staging_s: Mapping[str, float]) -> Reason:
    there = rule.target.data.get(name)
    if there is None:
        return Reason("data", holds=False, text=f"site {rule.target.site} has no copy of {name}")
    if there.stage_within is None:
        how = "is there" if there.storage == name else f"has a copy there, {there.storage}"
        return Reason("data", holds=True, text=f"{name} {how}")
    takes = staging_s.get(there.storage)
    limit = f"stage_within of {there.storage} is {hours(there.stage_within)}"
    if takes is None:
        return Reason("data", holds=True, text=f"{name} is staged first: {limit}")
    text = f"staging {name} takes {hours(takes)}, {limit}"
    return Reason("data", takes <= there.stage_within, text)


def _fits_budget(rule: Rule, job: PendingJob) -> Iterator[Reason]:
    """Yield whether prices are known, and whether the job by itself stays below the ceilings."""
    if not rule.ceilings:
        return
    if not rule.caps:
        text = f"the price of {rule.target.machine} is unknown, and {rule.ceilings[0].where} is set"
        yield Reason("price", holds=False, text=text)
        return
    cheapest = cheapest_rent(rule, job.nodes, job.time_limit)
    rate = cheapest.usd_per_hour
    for ceiling in over_hour(rule.ceilings, rate):
        text = f"it costs ${rate:,.2f}/h by itself, {ceiling.where} leaves ${ceiling.usd:,.2f}"
        yield Reason("alone", holds=False, text=text)
        return
    for ceiling, _day, usd in over_day(rule.ceilings, {}, cheapest):
        text = f"it may cost ${usd:,.2f} a day by itself, {ceiling.where} is ${ceiling.usd:,.2f}"
        yield Reason("alone", holds=False, text=text)
        return
    yield Reason("alone", holds=True, text=f"by itself it costs ${rate:,.2f}/h and is below all")


def cheapest_rent(rule: Rule, nodes: int, time_limit: float | None) -> Rent:
    """Return the rent of a job that starts at a day's beginning on nodes bought the cheapest way.

    Nodes of the pool that are always there cost it nothing.
    """
    rented = max(0, nodes - rule.target.always)
    until = min(rule.longest(time_limit), DAY_S)
    return Rent(0.0, until, nodes, rented * min(rule.caps))


def hours(seconds: float) -> str:
    """Return "45 min", "2 h", "7 d": what limits are written in, in seconds where none fits."""
    for unit, size in (("d", DAY_S), ("h", HOUR_S), ("min", 60.0)):
        if seconds >= size and (seconds / size).is_integer():
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:,.0f} s"


def plural(count: int) -> str:
    """Return "1 node", "4 nodes"."""
    return "1 node" if count == 1 else f"{count} nodes"
