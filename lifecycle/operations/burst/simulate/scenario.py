"""What is replayed: a trace's jobs on a partition of a spec, and what is assumed about both."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal, TypeAlias

import msgspec

from .....schemas.catalog import Catalog
from .....schemas.cost.pools import pool_cost
from .....schemas.spec import ClusterSpec, Pool
from ..policy import PendingJob, Rule, rule_of
from .swf import Trace, TraceJob

Processor: TypeAlias = Literal["gpu", "cpu", "node"]
"""The resource that a trace's processor represents."""
BOOT_S = 300.0
"""Default time until a rented node runs jobs (5 min)."""
_EVERYONE = "*"


class Assumed(msgspec.Struct, frozen=True, kw_only=True):
    """Values that neither the spec nor the trace gives."""

    processor: Processor | None = None
    """None: a GPU where the partition's nodes have some, else a CPU."""
    boot_s: float = BOOT_S
    stage_s: float | None = None
    """How long staging takes; None: as long as its limit allows."""
    accounts: dict[str, str] = {}
    """Group of the trace -> account of the spec; "*": every other group."""
    qos: dict[str, str] = {}
    """Queue of the trace -> QOS of the spec; "*": every other queue."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs by their place in the trace, and where they may run."""

    partition: str
    rule: Rule | None
    """None: jobs don't spill."""
    home_nodes: int
    gpus_per_node: int
    processor: Processor
    processors_per_node: int
    assumed: Assumed
    begins: float
    """When the trace begins, in seconds since the epoch."""
    submits: list[float]
    """Seconds since the epoch."""
    runs: list[float]
    """Seconds; none is longer than its limit."""
    limits: list[float]
    """Seconds; the run time itself where the trace has no limit."""
    nodes: list[int]
    trace_jobs: list[TraceJob]
    cut: int
    """Jobs that ran longer than they had requested: they end at their limit here."""
    unlimited: int
    """Jobs without a limit in the trace."""

    def pending(self, job: int, eligible: float, *, returned: bool) -> PendingJob:
        """Return a job as the policy takes it."""
        known = self.trace_jobs[job]
        gpus = self.gpus_per_node
        if gpus and self.processor == "gpu":
            gpus = min(gpus, known.processors)
        return PendingJob(
            id=str(known.number),
            eligible_since=eligible,
            nodes=self.nodes[job],
            gpus_per_node=gpus,
            time_limit=self.limits[job],
            account=_assumed(self.assumed.accounts, known.group),
            qos=_assumed(self.assumed.qos, known.queue),
            user=str(known.user),
            returned=returned,
        )

    @property
    def staging_s(self) -> dict[str, float]:
        """How long staging takes, for the policy."""
        if self.rule is None or self.assumed.stage_s is None:
            return {}
        there = self.rule.target.data.values()
        return {each.storage: self.assumed.stage_s for each in there}


def scenario_of(
    spec: ClusterSpec, catalog: Catalog, trace: Trace, partition: str, assumed: Assumed
) -> Scenario:
    """Put a trace's jobs on a partition.

    Args:
        spec: a spec that passed its checks.
        catalog: has the machine types and their prices.
        trace: what is replayed.
        partition: one of the spec's; the nodes of its pools are assumed to be identical, with as
            many GPUs and CPUs as the smallest has.
        assumed: values that neither gives.
    """
    pools = [spec.pools[name] for name in spec.scheduler.partitions[partition].pools]
    home = sum(pool_cost(pool, spec.sites[pool.site], catalog).count for pool in pools)
    gpus = min(_gpus(pool, catalog) for pool in pools)
    processor = assumed.processor or ("gpu" if gpus else "cpu")
    cpus = min(_cpus(pool, catalog) for pool in pools)
    per_node = {"gpu": gpus, "cpu": cpus, "node": 1}[processor] or 1
    limits = [job.run if job.requested is None else job.requested for job in trace.jobs]
    limits = [max(1.0, limit) for limit in limits]
    rule = rule_of(spec, catalog, partition)
    return Scenario(
        partition=partition,
        rule=None if rule is None else _with_boot(rule, assumed.boot_s),
        home_nodes=home,
        gpus_per_node=gpus,
        processor=processor,
        processors_per_node=per_node,
        assumed=assumed,
        begins=trace.begins,
        submits=[trace.begins + job.submit for job in trace.jobs],
        runs=[min(job.run, limit) for job, limit in zip(trace.jobs, limits, strict=True)],
        limits=limits,
        nodes=[ceil(job.processors / per_node) for job in trace.jobs],
        trace_jobs=trace.jobs,
        cut=sum(_is_cut(trace.jobs, limits)),
        unlimited=sum(job.requested is None for job in trace.jobs),
    )


def _is_cut(jobs: Sequence[TraceJob], limits: Sequence[float]) -> list[bool]:
    return [job.run > limit for job, limit in zip(jobs, limits, strict=True)]


def _with_boot(rule: Rule, boot_s: float) -> Rule:
    """Count nodes with the time that they are assumed to take, where the spec allows less."""
    target = rule.target
    start_up = max(target.start_up, boot_s)
    return msgspec.structs.replace(rule, target=msgspec.structs.replace(target, start_up=start_up))


def _gpus(pool: Pool, catalog: Catalog) -> int:
    machine = catalog.machines.get(pool.machine or "")
    return 0 if machine is None or machine.gpu is None else machine.gpu.count * pool.slices_per_gpu


def _cpus(pool: Pool, catalog: Catalog) -> int:
    if pool.cpu is not None:
        return pool.cpu.sockets * pool.cpu.cores * pool.cpu.threads_per_core
    machine = catalog.machines.get(pool.machine or "")
    return 1 if machine is None else machine.cpu.threads or 1


def _assumed(names: dict[str, str], number: int) -> str | None:
    return names.get(str(number), names.get(_EVERYONE))
