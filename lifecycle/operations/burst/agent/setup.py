"""From a spec to what the agent works on: pools whose nodes come and go, and who spills where."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from .....inventory.compile.slurm.scheduling import spill_partitions
from .....inventory.hosts import elastic_nodes, pool_host_names
from .....schemas.catalog import Catalog
from .....schemas.derived.hostlist import expand
from .....schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler, SlurmScheduler
from .....schemas.spec.scheduler.slurm import RESUME_TIMEOUT_S
from .....schemas.spec.scheduler.work import SUSPEND_AFTER_S
from ..policy import rule_of, spilling_partitions
from ..policy.spec_rules import purchase_options
from .decide import OVERDUE_S, ElasticPool, GoOn, Leave, grouped
from .ledger import BurstFold
from .spill import Spilling


def elastic_pools(spec: ClusterSpec, catalog: Catalog) -> tuple[ElasticPool, ...]:
    """Return the pools whose nodes come and go, in spec order."""
    slurm = spec.scheduler if isinstance(spec.scheduler, SlurmScheduler) else None
    idle_s = (
        SUSPEND_AFTER_S if isinstance(spec.scheduler, NoScheduler) else spec.scheduler.suspend_s
    )
    found = []
    for name, nodes in elastic_nodes(spec).items():
        offered = purchase_options(spec, catalog, spec.pools[name])
        found.append(
            ElasticPool(
                pool=name,
                site=spec.pools[name].site,
                nodes=nodes,
                purchase_options=tuple(option.key for option in offered) or ("",),
                prices={o.key: o.usd_per_hour for o in offered if o.usd_per_hour is not None},
                come_s=RESUME_TIMEOUT_S if slurm is None else slurm.resume_s,
                idle_s=idle_s,
                overdue_s=0.0 if isinstance(spec.scheduler, KubernetesScheduler) else OVERDUE_S,
            )
        )
    return tuple(found)


def spillings(spec: ClusterSpec, catalog: Catalog) -> tuple[Spilling, ...]:
    """Return the partitions whose jobs may move, in spec order; none but Slurm's."""
    return tuple(_spillings(spec, catalog)) if isinstance(spec.scheduler, SlurmScheduler) else ()


def _spillings(spec: ClusterSpec, catalog: Catalog) -> Iterator[Spilling]:
    to = spill_partitions(spec)
    for name in spilling_partitions(spec):
        rule = rule_of(spec, catalog, name)
        if rule is not None:
            pools = spec.scheduler.partitions[name].pools
            pool = rule.target.pool
            yield Spilling(
                rule=rule,
                to=to[pool],
                home_nodes=tuple(n for p in pools for n in _names(spec, p)),
                always=_names(spec, pool),
            )


def permanent_nodes(spec: ClusterSpec) -> frozenset[str]:
    """Return the nodes that the spec has at all times."""
    return frozenset(name for pool in spec.pools for name in _names(spec, pool))


def _names(spec: ClusterSpec, pool: str) -> tuple[str, ...]:
    """Return the nodes of a pool that are always there."""
    pool_spec = spec.pools[pool]
    if pool_spec.hosts is None:
        return tuple(
            pool_host_names(pool, msgspec.structs.replace(pool_spec, count=pool_spec.least or 0))
        )
    entries = [pool_spec.hosts] if isinstance(pool_spec.hosts, str) else pool_spec.hosts
    return tuple(
        name
        for entry in entries
        for name in expand(entry if isinstance(entry, str) else entry.name)
    )


def gpu_models(spec: ClusterSpec, catalog: Catalog) -> dict[str, str]:
    """Return GPU type as the scheduler has it (h100) -> model as the catalog has it (H100)."""
    machines = {pool.machine for pool in spec.pools.values() if pool.machine in catalog.machines}
    gpus = (catalog.machines[name].gpu for name in sorted(filter(None, machines)))
    return {gpu.model.lower(): gpu.model for gpu in gpus if gpu is not None}


REASON = "the spec has it no more"


def out_of_spec(
    pools: Collection[ElasticPool],
    always: Collection[str],
    fold: BurstFold,
    busy: Collection[str],
) -> Iterator[Leave | GoOn]:
    """Yield what gives such nodes back.

    Args:
        pools: whose nodes come and go.
        always: nodes that the spec has at all times: one that was rented may be one of them by now.
        fold: the ledger.
        busy: nodes that a call is at work for.
    """
    names = {pool.pool: frozenset(pool.nodes) for pool in pools}
    stay = frozenset(always) | frozenset(busy)
    mine = [
        record
        for record in fold.nodes.values()
        if record.is_live
        and record.pool in names
        and record.node not in names[record.pool]
        and record.node not in stay
    ]
    if leave := [record for record in mine if record.step != "leaving"]:
        yield Leave(records=tuple(leave), reason=REASON)
    for group in grouped(record for record in mine if record.step == "leaving"):
        yield GoOn(records=group)
