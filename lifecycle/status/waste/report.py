"""`gcluster report`: who used how many GPU hours, at which use and cost, over a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from ....inventory.dashboards import dashboard_link
from ....inventory.waste import INTERVAL_S
from .goodput import Ended
from .kubernetes import SLICES, report_queries
from .prometheus import QueryPrometheus, Sample, over_time
from .queries import named

FORMAT = "gcluster/report/v1"
HOUR_S, DAY_S = 3600, 86_400
_HOURLY_UP_TO_S = 2 * DAY_S
_MOST_NAMED = 10
"""Jobs that a note names."""
_GPUS = ("held", "active", "tensor", "idle", "untouched", "unmeasured")
State: TypeAlias = Literal["drained", "down", "reserved", "idle"]


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of an account, or of one of its users, over the time. None: it isn't known."""

    account: str
    user: str = ""
    """"": all of the account's."""
    jobs: int = 0
    """Jobs that held GPUs."""
    gpu_hours: float = 0.0
    """All that Slurm gave them."""
    unmeasured_gpu_hours: float = 0.0
    """Of those without metrics: nothing of the following is known of them."""
    active: float | None = None
    """Share of the measured time that SMs were active."""
    tensor: float | None = None
    idle_gpu_hours: float | None = None
    """In which a GPU had been below 1 % for 10 minutes."""
    untouched_gpu_hours: float | None = None
    """In which a job older than 10 minutes had never touched a GPU."""
    usd: float | None = None
    """Price of the measured GPU hours, as far as their pools' is known."""
    wasted_usd: float | None = None
    wait_median_s: float | None = None
    """Of jobs with GPUs that started: from when they could to when they did."""
    wait_max_s: float | None = None
    goodput: float | None = None
    """Share of the GPU hours of its jobs, cut to the time, that belong to jobs which completed."""


class PoolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A pool's nodes over the time; None where its price isn't known."""

    pool: str
    usd: float | None
    """Price of all nodes that were there."""
    held_usd: float | None
    """Of GPUs that jobs held and that were measured."""
    wasted_usd: float | None
    unused_usd: dict[str, float]
    """State of nodes -> price of what no job held."""
    node_hours: float | None = None
    """In which its nodes were there. None, as `failures`: no metric says it."""
    failures: int | None = None
    """Times that a node of it failed: didn't answer without being drained, was down to Slurm, or
    was drained by its health check."""

    @property
    def mtbf_hours(self) -> float | None:
        """Node hours between two failures; None: there was none, or it isn't known."""
        return self.node_hours / self.failures if self.node_hours and self.failures else None


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One hour or day, all accounts together."""

    until: float
    """Its end, Unix time in s."""
    usd: float
    wasted_usd: float
    unused_usd: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `report` shows, and what it exports."""

    cluster: str
    since: float
    """Unix time in s."""
    until: float
    measured_s: float
    """Of that time, how long Prometheus has metrics."""
    simulated: bool
    accounts: tuple[Use, ...]
    """Who wasted most first."""
    users: tuple[Use, ...]
    pools: tuple[PoolUse, ...]
    slice_s: int
    """Length of a slice in s: an hour or a day."""
    slices: tuple[Slice, ...]
    notes: tuple[str, ...]
    """What the figures lack."""
    link: str = ""
    """The dashboard of accounts in a Grafana, at this time; "": the spec names none."""
    format: str = FORMAT


def read_report(
    cluster: str,
    query: QueryPrometheus,
    *,
    since: float,
    until: float,
    goodput: Mapping[str, Ended] | None = None,
    bounds: Iterable[str] = (),
    grafana: str | None = None,
    of_pods: bool = False,
) -> Report:
    """Query everything that a report shows.

    Args:
        cluster: its name.
        query: how to query its Prometheus.
        since: Unix time in s, where it begins.
        until: where it ends.
        goodput: account -> GPU hours of jobs by how they ended; None: it isn't known.
        bounds: pools whose nodes cost at most what is reckoned with.
        grafana: address of a Grafana that has its dashboards; None: no link.
        of_pods: under Kubernetes: who has a GPU is a namespace, which is an account.

    Raises:
        LifecycleError: Prometheus doesn't answer (GC1198).
    """
    span = round(until - since)
    texts = _queries(span)
    asked = report_queries(span, INTERVAL_S / HOUR_S) if of_pods else texts
    found = named(query, asked, texts, until)
    slice_s = HOUR_S if span <= _HOURLY_UP_TO_S else DAY_S
    rows = _rows(found, asked)
    accounts = _uses(found, rows, goodput, by_user=False)
    pools = _pools(found)
    measured = max((each.value for each in found["measured"]), default=0.0) * INTERVAL_S
    return Report(
        cluster=cluster,
        since=since,
        until=until,
        measured_s=min(measured, float(span)),
        simulated=bool(found["double"]),
        accounts=accounts,
        users=() if of_pods else _uses(found, rows, None, by_user=True),
        pools=pools,
        slice_s=slice_s,
        slices=_slices(query, since, until, slice_s, SLICES if of_pods else _SLICES),
        notes=tuple(_notes(found, accounts, pools, goodput, bounds)),
        link=dashboard_link(grafana, cluster, "money", span=(since, until)),
    )


def _queries(span: int) -> dict[str, str]:
    """Return the queries over the last `span` s; sums are in hours, or dollars."""

    def total(metric: str, by: str) -> str:
        hours = INTERVAL_S / HOUR_S
        return f"sum by ({by}) (sum_over_time({metric}[{span}s])) * {hours:.15g}"

    owner = "account, user, pool"
    jobs = f"group by (hpc_job, account, user) (max_over_time(gcluster_slurm_job_gpus[{span}s]))"
    waits = (
        f"max by (hpc_job) (max_over_time(gcluster_slurm_job_wait_seconds[{span}s])) "
        f"* on (hpc_job) group_right () {jobs}"
    )
    return {
        **{name: total(f"gcluster:user_gpus:{name}", owner) for name in _GPUS},
        "usd": total("gcluster:user_usd_per_hour", owner),
        "wasted": total("gcluster:user_wasted_usd_per_hour", owner),
        "jobs": f"count by (account, user) ({jobs})",
        "wait_median": f"quantile by (account) (0.5, {waits})",
        "wait_max": f"max by (account) ({waits})",
        "user_wait_median": f"quantile by (account, user) (0.5, {waits})",
        "user_wait_max": f"max by (account, user) ({waits})",
        "pool_usd": total("gcluster:pool_usd_per_hour", "pool"),
        "pool_unused": total("gcluster:pool_unused_usd_per_hour", "pool, state"),
        "all_pools": f'group by (pool) (max_over_time(up{{job="node"}}[{span}s]))',
        "spare_nodes": f"max by (hpc_job) (max_over_time(gcluster:job_nodes:spare[{span}s])) > 0",
        "node_hours": total('up{job="node"}', "pool").replace("sum_over", "count_over"),
        # A failure that ended, and those that haven't.
        "failures": f"sum by (pool) (resets(gcluster:node_failed[{span}s]) "
        f"+ last_over_time(gcluster:node_failed[{span}s]))",
        "preempted": f"sum(increase(gcluster_slurm_preemptions_total[{span}s]))",
        "measured": f'count_over_time(up{{job="prometheus"}}[{span}s])',
        "double": f"max(max_over_time(gcluster_dcgm_double[{span}s]))",
    }


_Row: TypeAlias = tuple[str, str, str]
"""Account, user, pool."""


def _rows(
    found: Mapping[str, list[Sample]], asked: Mapping[str, str]
) -> dict[str, dict[_Row, float]]:
    return {
        name: {(s.label("account"), s.label("user"), s.label("pool")): s.value for s in found[name]}
        for name in (*_GPUS, "usd", "wasted", "jobs")
        if name in asked
    }


def _uses(
    found: Mapping[str, list[Sample]],
    rows: Mapping[str, Mapping[_Row, float]],
    goodput: Mapping[str, Ended] | None,
    *,
    by_user: bool,
) -> tuple[Use, ...]:
    """Return a line for each account, or for each of its users."""

    def summed(name: str) -> dict[tuple[str, str], float]:
        sums: defaultdict[tuple[str, str], float] = defaultdict(float)
        for (account, user, _), value in rows[name].items():
            sums[account, user if by_user else ""] += value
        return dict(sums)

    sums = {name: summed(name) for name in rows}
    prefix = "user_wait" if by_user else "wait"
    waits = {
        part: {(s.label("account"), s.label("user")): s.value for s in found[f"{prefix}_{part}"]}
        for part in ("median", "max")
    }
    owners = set().union(*(sums.get(name, {}) for name in ("held", "unmeasured", "jobs")))
    uses = []
    for owner in owners:
        held = sums["held"].get(owner, 0.0)
        unmeasured = sums.get("unmeasured", {}).get(owner, 0.0)
        ended = (goodput or {}).get(owner[0])
        uses.append(
            Use(
                account=owner[0],
                user=owner[1],
                jobs=round(sums["jobs"].get(owner, 0)),
                gpu_hours=held + unmeasured,
                unmeasured_gpu_hours=unmeasured,
                active=_share(sums["active"].get(owner), held),
                tensor=_share(sums.get("tensor", {}).get(owner), held),
                idle_gpu_hours=sums["idle"].get(owner, 0.0) if held else None,
                untouched_gpu_hours=sums["untouched"].get(owner, 0.0)
                if held and "untouched" in sums
                else None,
                usd=sums["usd"].get(owner),
                wasted_usd=sums["wasted"].get(owner),
                wait_median_s=waits["median"].get(owner),
                wait_max_s=waits["max"].get(owner),
                goodput=None if ended is None else ended.goodput,
            )
        )
    return tuple(sorted(uses, key=_worst_first))


def _worst_first(use: Use) -> tuple[float, float, str, str]:
    return -(use.wasted_usd or 0.0), -use.gpu_hours, use.account, use.user


def _share(part: float | None, whole: float) -> float | None:
    return None if part is None or not whole else min(part / whole, 1.0)


def _pools(found: Mapping[str, list[Sample]]) -> tuple[PoolUse, ...]:
    names = sorted({each.label("pool") for each in found["all_pools"]})
    unused: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for each in found["pool_unused"]:
        unused[each.label("pool")][each.label("state")] = each.value
    usd, held, wasted = (_by_pool(found[name]) for name in ("pool_usd", "usd", "wasted"))
    node_hours, failures = (_by_pool(found[name]) for name in ("node_hours", "failures"))
    return tuple(
        PoolUse(
            pool=name,
            usd=usd.get(name),
            held_usd=held.get(name),
            wasted_usd=wasted.get(name),
            unused_usd=unused[name],
            node_hours=node_hours.get(name) if name in failures else None,
            failures=round(failures[name]) if name in failures else None,
        )
        for name in names
    )


def _by_pool(samples: Iterable[Sample]) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for each in samples:
        sums[each.label("pool")] += each.value
    return dict(sums)


_SLICES = {
    "usd": "gcluster:user_usd_per_hour",
    "wasted": "gcluster:user_wasted_usd_per_hour",
    "unused": "gcluster:pool_unused_usd_per_hour",
}


def _slices(
    query: QueryPrometheus, since: float, until: float, slice_s: int, metrics: Mapping[str, str]
) -> tuple[Slice, ...]:
    """Return what each hour or day cost; the last one ends where the report does."""
    hours = INTERVAL_S / HOUR_S
    queries = {
        name: f"sum(sum_over_time({metric}[{slice_s}s])) * {hours:.15g}"
        for name, metric in metrics.items()
    }
    number = max(int((until - since) // slice_s), 1)
    found = over_time(query, queries, until - (number - 1) * slice_s, until, slice_s)
    by = {
        name: {round(at): value for series in several for at, value in series.points}
        for name, several in found.items()
    }
    times = sorted(set().union(*by.values()))
    return tuple(
        Slice(
            until=at,
            usd=by["usd"].get(at, 0.0),
            wasted_usd=by["wasted"].get(at, 0.0),
            unused_usd=by["unused"].get(at, 0.0),
        )
        for at in times
    )


def _notes(
    found: Mapping[str, list[Sample]],
    accounts: Iterable[Use],
    pools: Iterable[PoolUse],
    goodput: Mapping[str, Ended] | None,
    bounds: Iterable[str],
) -> Iterable[str]:
    if not found["all_pools"]:
        yield "Prometheus has no metrics of that time"
        return
    unpriced = [pool.pool for pool in pools if pool.usd is None]
    if unpriced:
        yield f"the price of {', '.join(unpriced)} isn't known: no dollars of it are in the sums"
    if at_most := sorted({*bounds} & {pool.pool for pool in pools}):
        yield f"nodes of {', '.join(at_most)} cost at most what is reckoned with"
    hours = sum(use.unmeasured_gpu_hours for use in accounts)
    if hours >= 0.05:  # noqa: PLR2004  # what is shown as 0.1
        yield f"{hours:.1f} GPU hours aren't measured: how busy the GPUs were isn't known"
    spare = {one.label("hpc_job"): one.value for one in found["spare_nodes"]}
    if spare:
        jobs = sorted(spare, key=lambda job: (len(job), job))
        more = ", ..." if len(jobs) > _MOST_NAMED else ""
        nodes = "1 node" if sum(spare.values()) == 1 else f"{sum(spare.values()):,.0f} nodes"
        yield (
            f"badly packed, on {nodes} more than their GPUs fill: job "
            f"{', '.join(jobs[:_MOST_NAMED])}{more}"
        )
    preempted = round(sum(each.value for each in found["preempted"]))
    if preempted:
        yield f"jobs were preempted {'once' if preempted == 1 else f'{preempted:,} times'}"
    if goodput is None:
        yield "goodput isn't known: the cluster keeps no accounts of jobs that ended"
