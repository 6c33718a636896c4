"""`gcluster top`: jobs, their use of GPUs and what is wasted, nodes, and links, as they are now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from ....inventory.dashboards import dashboard_link
from .links import LINKS, LinkUse, links_of
from .prometheus import QueryPrometheus, Sample
from .queries import Queries, named

_BY_JOB = "hpc_job, account, user, qos, partition, job_name"
_OF_NODE = 'label_replace({}, "instance", "$1", "node", "(.+)")'
_QUERIES = {
    "jobs": f"max by ({_BY_JOB}) (gcluster_slurm_job_gpus)",
    "start": "max by (hpc_job) (gcluster_slurm_job_start_time_seconds)",
    "held": "gcluster:job_gpus:held",
    "active": "sum by (hpc_job) (gcluster:job_gpus:active)",
    "tensor": "sum by (hpc_job) (gcluster:job_gpus:tensor)",
    "idle": "sum by (hpc_job) (gcluster:job_gpus:idle)",
    "untouched": "sum by (hpc_job) (gcluster:job_gpus:untouched)",
    "usd": "gcluster:job_usd_per_hour",
    "wasted": "sum by (hpc_job) (gcluster:job_wasted_usd_per_hour)",
    "nodes": 'group by (instance, pool) (up{job="node"})',
    "compute": f"group by (instance) ({_OF_NODE.format('slurm_node_cpus')})",
    "drained": f"max by (instance) ({_OF_NODE.format('gcluster_slurm_node_drained == 1')})",
    "down": f"max by (instance) ({_OF_NODE.format('gcluster_slurm_node_down == 1')})",
    "reserved": f"max by (instance) ({_OF_NODE.format('gcluster_slurm_node_unclaimed == 1')})",
    "node_usd": "gcluster:node_usd_per_hour",
    "unused": "gcluster:node_unused_usd_per_hour",
    "free": "gcluster:node_free:ratio",
    "gpus": f"max by (instance) ({_OF_NODE.format('slurm_node_gpus')})",
    "node_active": "avg by (instance) (avg by (instance, gpu) (gcluster:gpu_active:ratio))",
    "scheduler": "max(gcluster_slurm_up)",
    "double": "max(gcluster_dcgm_double)",
    **LINKS,
}

SLURM = Queries(
    missing="Slurm's figures are missing: slurmctld doesn't answer, or they aren't scraped yet",
    texts=_QUERIES,
)
"""Of a Slurm cluster."""

_OUT = ("drained", "down", "reserved")
"""States of nodes; the first that holds, as the recording rules have it."""


class JobUse(msgspec.Struct, frozen=True, kw_only=True):
    """A running job that holds GPUs."""

    job: str
    name: str
    account: str
    user: str
    qos: str
    partition: str
    pools: tuple[str, ...]
    """Of the GPUs that are measured."""
    running_s: float | None
    gpus: float
    """That Slurm has given it."""
    measured_gpus: float
    """Of which metrics name it."""
    active: float | None
    """Share of the time that the SMs of those were active; None: none is measured."""
    tensor: float | None
    """The same of their tensor cores."""
    idle_gpus: float | None
    """Below 1 % for 10 minutes; None: not measured, or the job is younger."""
    untouched_gpus: float | None
    """Below 1 % since its start; None as before."""
    usd_per_hour: float | None
    """Of its measured GPUs whose price is known; None: of none it is."""
    wasted_usd_per_hour: float | None
    link: str = ""
    """Its dashboard in a Grafana; "": the spec names none."""


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is scraped."""

    name: str
    pool: str
    state: str
    """drained, down, reserved, idle, in use; "": no node of Slurm's."""
    gpus: int | None
    free: float | None
    """Share of it that no job holds."""
    active: float | None
    """Of its GPUs, held or not; None: not measured."""
    usd_per_hour: float | None
    unused_usd_per_hour: float | None
    """Price of what no job holds."""
    link: str = ""
    """Its dashboard, likewise."""


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """What `top` shows."""

    cluster: str
    at: float
    """Unix time in s."""
    simulated: bool
    """Some GPUs are simulated: a double made up their figures."""
    jobs: tuple[JobUse, ...]
    """Those that waste most first; those of which nothing is known last."""
    knows_jobs: bool
    """The scheduler's figures are there; else that no job is listed says nothing."""
    nodes: tuple[NodeUse, ...]
    usd_per_hour: float | None
    """Of all nodes whose price is known."""
    held_usd_per_hour: float | None
    """Of the GPUs that jobs hold and that are measured."""
    wasted_usd_per_hour: float | None
    unused_usd_per_hour: dict[str, float]
    """State of nodes -> price of what no job holds of them."""
    unpriced_pools: tuple[str, ...]
    problems: tuple[str, ...]
    """What the figures lack."""
    links: tuple[LinkUse, ...] = ()
    """Of its network: those that are down or come and go, and the busiest."""
    link: str = ""
    """The cluster's dashboard, likewise."""


def read_now(
    cluster: str,
    query: QueryPrometheus,
    at: float,
    grafana: str | None = None,
    queries: Queries = SLURM,
) -> Now:
    """Query everything that `top` shows.

    Args:
        cluster: its name.
        query: how to query its Prometheus.
        at: Unix time in s.
        grafana: address of a Grafana that has its dashboards; None: no links.
        queries: what its scheduler has metrics for; nothing is known of the rest.

    Raises:
        LifecycleError: it doesn't answer (GC1198).
    """

    def link(board: str, of: str = "") -> str:
        return dashboard_link(grafana, cluster, board, of)

    found = named(query, queries.texts, SLURM.texts, at)
    jobs, nodes = _jobs(found, at), _nodes(found)
    if grafana is not None:
        jobs = tuple(msgspec.structs.replace(j, link=link("job", j.job)) for j in jobs)
        nodes = tuple(msgspec.structs.replace(n, link=link("node", n.name)) for n in nodes)
    unused: defaultdict[str, float] = defaultdict(float)
    for each in found["unused"]:
        unused[each.label("state")] += each.value
    return Now(
        cluster=cluster,
        at=at,
        simulated=bool(found["double"]),
        jobs=jobs,
        knows_jobs=_knows_jobs(found),
        nodes=nodes,
        usd_per_hour=_sum(each.value for each in found["node_usd"]),
        held_usd_per_hour=_sum(j.usd_per_hour for j in jobs),
        wasted_usd_per_hour=_sum(j.wasted_usd_per_hour for j in jobs),
        unused_usd_per_hour=dict(unused),
        unpriced_pools=tuple(sorted({n.pool for n in nodes if n.usd_per_hour is None and n.state})),
        problems=tuple(_problems(found, jobs, queries.missing)),
        links=links_of(found),
        link=link("cluster"),
    )


def _jobs(found: Mapping[str, list[Sample]], at: float) -> tuple[JobUse, ...]:
    by = {name: _by(found[name], "hpc_job") for name in found}
    pools: defaultdict[str, list[str]] = defaultdict(list)
    for each in found["held"]:
        pools[each.label("hpc_job")].append(each.label("pool"))
    jobs = {}
    for each in found["jobs"]:
        job = each.label("hpc_job")
        held = by["held"].get(job, 0.0)
        start = by["start"].get(job)
        jobs[job] = JobUse(
            job=job,
            name=each.label("job_name"),
            account=each.label("account"),
            user=each.label("user"),
            qos=each.label("qos"),
            partition=each.label("partition"),
            pools=tuple(sorted(pools[job])),
            running_s=None if start is None else max(at - start, 0.0),
            gpus=each.value,
            measured_gpus=held,
            active=by["active"][job] / held if held and job in by["active"] else None,
            tensor=by["tensor"][job] / held if held and job in by["tensor"] else None,
            idle_gpus=by["idle"].get(job),
            untouched_gpus=by["untouched"].get(job),
            usd_per_hour=by["usd"].get(job),
            wasted_usd_per_hour=by["wasted"].get(job),
        )
    return tuple(sorted(jobs.values(), key=_worst_first))


def _worst_first(job: JobUse) -> tuple[bool, float, float, float, str]:
    """Order by waste in money; where no price is known by GPUs without use; the unknown last."""
    wasted = job.wasted_usd_per_hour
    unused = 0.0 if job.active is None else job.measured_gpus * (1 - job.active)
    return job.active is None, -(wasted or 0.0), -unused, -job.gpus, job.job


def _nodes(found: Mapping[str, list[Sample]]) -> tuple[NodeUse, ...]:
    by = {name: _by(found[name], "instance") for name in found}
    nodes = []
    for each in found["nodes"]:
        name = each.label("instance")
        free, gpus = by["free"].get(name), by["gpus"].get(name)
        state = next((word for word in _OUT if name in by[word]), "idle")
        if state == "idle" and free is not None and free < 1:
            state = "in use"
        nodes.append(
            NodeUse(
                name=name,
                pool=each.label("pool"),
                state=state if name in by["compute"] else "",
                gpus=None if gpus is None else int(gpus),
                free=free,
                active=by["node_active"].get(name),
                usd_per_hour=by["node_usd"].get(name),
                unused_usd_per_hour=by["unused"].get(name),
            )
        )
    return tuple(sorted(nodes, key=lambda n: (-(n.unused_usd_per_hour or 0.0), n.name)))


def _knows_jobs(found: Mapping[str, list[Sample]]) -> bool:
    return any(each.value for each in found["scheduler"])


def _problems(
    found: Mapping[str, list[Sample]], jobs: Iterable[JobUse], missing: str
) -> Iterable[str]:
    if not found["nodes"]:
        yield "Prometheus has no metrics of any node yet"
    elif not _knows_jobs(found):
        yield missing
    silent = [job.job for job in jobs if job.measured_gpus < job.gpus]
    if silent:
        yield f"GPUs of job {', '.join(silent)} aren't measured: how busy they are isn't known"


def _by(samples: Iterable[Sample], label: str) -> dict[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for each in samples:
        found[each.label(label)] += each.value
    return dict(found)


def _sum(values: Iterable[float | None]) -> float | None:
    """Add up what is known; None: nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
