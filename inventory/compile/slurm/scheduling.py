"""How Slurm orders and refuses jobs, and where its controllers keep the queue."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.derived.storage import mount_point
from ....schemas.spec import ClusterSpec, Partition, SlurmScheduler
from ....schemas.spec.scheduler import PriorityWeights
from ...accounting.desired import whole_minutes
from ..steps import Json

SCHEDULER_PARAMETERS = "SchedulerParameters"
"""The one setting of slurm.conf whose value is merged from ours and the spec's."""
SIMULATED_LOOK_S = 5
"""How often simulated clusters look at all jobs, whose queues are short; Slurm's own is 60 s."""
MAX_AGE = "7-0"
"""PriorityMaxAge, Slurm's own default, written out: `inventory.priority` counts with it."""


def written_partitions(spec: ClusterSpec) -> dict[str, Partition]:
    """Return the spec's partitions; without any, "main" with every compute pool.

    A pool that jobs spill to and that is in none gets one of its own: they move there.
    """
    if spec.scheduler.partitions:
        return spec.scheduler.partitions | {
            name: Partition(pools=[pool])
            for pool, name in spill_partitions(spec).items()
            if name not in spec.scheduler.partitions
        }
    pools = sorted(name for name, pool in spec.pools.items() if pool.runs_jobs)
    return {"main": Partition(pools=pools, default=True)} if pools else {}


def spill_partitions(spec: ClusterSpec) -> dict[str, str]:
    """Return pool that jobs spill to -> partition that they move to.

    That is the first one that has the pool; where there is none, one called as the pool is.
    """
    partitions = spec.scheduler.partitions
    found: dict[str, str] = {}
    for pool in sorted({each.spill.to for each in partitions.values() if each.spill is not None}):
        own = pool if pool not in partitions else f"{pool}-spill"
        found[pool] = next((name for name, each in partitions.items() if pool in each.pools), own)
    return found


def scheduling_variables(spec: ClusterSpec, catalog: Catalog) -> dict[str, Json]:
    """Return the spec's priorities and job rules; nothing where it has none."""
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler):
        return {}
    variables: dict[str, Json] = {}
    if slurm.priority != PriorityWeights():
        variables["slurm_priority"] = priority_variables(slurm.priority)
    variables |= settings_variables(slurm)
    rules = slurm.job_rules
    if rules.require_time or rules.require_gpus:
        variables["slurm_job_rules"] = {
            "require_time": rules.require_time,
            "require_gpus": rules.require_gpus,
            "gpu_partitions": gpu_partitions(spec, catalog),
        }
    return variables


def settings_variables(slurm: SlurmScheduler) -> dict[str, Json]:
    """Return the spec's own settings of slurm.conf and cgroup.conf; nothing where it has none."""
    own = {name: v for name, v in slurm.settings.slurm.items() if name != SCHEDULER_PARAMETERS}
    found: dict[str, Json] = {
        "slurm_settings": written_settings(own),
        "slurm_cgroup_settings": written_settings(slurm.settings.cgroup),
    }
    return {name: values for name, values in found.items() if values}


def written_settings(settings: Mapping[str, str | bool | float]) -> dict[str, Json]:
    """Return settings as Slurm's files have them: yes and no for booleans."""
    return {
        name: ("yes" if value else "no") if isinstance(value, bool) else str(value)
        for name, value in sorted(settings.items())
    }


def priority_variables(weights: PriorityWeights) -> dict[str, Json]:
    """Return the weights of priority/multifactor as role slurm takes them."""
    return {"max_age": MAX_AGE, **msgspec.structs.asdict(weights)}


def gpu_partitions(spec: ClusterSpec, catalog: Catalog) -> list[str]:
    """Return the partitions of which any node has a GPU, simulated ones too, by name."""

    def has_gpu(pool: str) -> bool:
        machine = spec.pools[pool].machine
        return machine is not None and catalog.machines[machine].gpu is not None

    partitions = written_partitions(spec)
    return sorted(name for name, one in partitions.items() if any(map(has_gpu, one.pools)))


def partition_limits(partition: Partition) -> dict[str, Json]:
    """Return what a partition limits beyond time, as far as no database is needed for it."""
    limits: dict[str, Json] = {}
    if partition.default_time is not None:
        limits["default_time_minutes"] = whole_minutes(partition.default_time)
    if partition.max_nodes is not None:
        limits["max_nodes"] = partition.max_nodes
    if partition.tier != 1:
        limits["tier"] = partition.tier
    if partition.exclusive:
        limits["exclusive"] = True
    if partition.hidden:
        limits["hidden"] = True
    return limits


def default_memory(spec: ClusterSpec, partition: Partition, share_mib: int) -> dict[str, Json]:
    """Return the default memory of jobs: as in the spec, else a CPU's share.

    Slurm takes one of the three (slurm.conf(5): "mutually exclusive"). One that is set for all
    partitions would be hidden by a partition's own, so it is left out then.
    """
    written = {
        "mem_per_cpu_mib": partition.memory_per_cpu,
        "mem_per_gpu_mib": partition.memory_per_gpu,
        "mem_per_node_mib": partition.memory_per_node,
    }
    for variable, size in written.items():
        if size is not None:
            return {"mem_per_cpu_mib": 0, variable: int(size.value // 2**20)}
    slurm = spec.scheduler
    settings = slurm.settings.slurm if isinstance(slurm, SlurmScheduler) else {}
    is_for_all = any(name.startswith("DefMemPer") for name in settings)
    return {"mem_per_cpu_mib": 0 if is_for_all else share_mib}


JWT_SECRET = "slurm-jwt"  # noqa: S105  # the secret's name
"""Name of the secret that holds the key of the tokens of slurmrestd's clients."""


def state_variables(spec: ClusterSpec) -> dict[str, Json]:
    """Return where StateSaveLocation is; nothing where it is the controller's own disk.

    The folder has the cluster's name: several clusters may keep their state on one file system.
    """
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler) or slurm.state_save is None:
        return {}
    mount = mount_point(spec.storage[slurm.state_save])
    return {
        "slurm_state": f"{mount.rstrip('/')}/gcluster/{spec.name}/slurmctld",
        "slurm_state_mount": mount,
    }


def has_rest_api(spec: ClusterSpec) -> bool:
    """Whether slurmrestd runs on the controllers."""
    return isinstance(spec.scheduler, SlurmScheduler) and spec.scheduler.rest_api


def has_windows(spec: ClusterSpec) -> bool:
    """Whether Slurm forwards the windows of jobs (`srun --x11`)."""
    return isinstance(spec.scheduler, SlurmScheduler) and spec.scheduler.x11


def connection_variables(spec: ClusterSpec) -> dict[str, Json]:
    """Return where srun may be reached; nothing where any port will do."""
    slurm = spec.scheduler
    ports = slurm.srun_ports if isinstance(slurm, SlurmScheduler) else None
    return {} if ports is None else {"slurm_srun_ports": ports}


LONGEST_WINDOW_MIN = 43_200
"""Most that bf_window takes: 30 days (slurm.conf(5), 22.05 to 25.11)."""
SHORTEST_WINDOW_MIN = 1_440
"""Slurm's own bf_window, a day: no shorter one is written."""
_RESOLUTION_S = ((1_440, 60), (10_080, 300), (LONGEST_WINDOW_MIN, 600))
"""Longest window in minutes -> bf_resolution. slurm.conf(5): who raises the one raises the other
too; 60 is Slurm's own, 600 that of SchedMD's high_throughput.html."""
SWITCH_WAIT_S = 86_400
"""max_switch_wait: the longest wait for nodes below few switches that a job may request. Slurm's
own 300 s cut every longer wait that a user requests (--switches=1@6:00:00)."""


def scheduler_parameters(
    spec: ClusterSpec, *, has_topology: bool, is_simulated: bool = False
) -> list[str]:
    """Return SchedulerParameters.

    Backfill plans as far ahead as the longest job may run, 30 days at most: it starves jobs that
    are longer than its window (slurm.conf(5), bf_window). A partition without a limit counts as
    30 days.

    Args:
        spec: the cluster.
        has_topology: whether Slurm gets switches or blocks.
        is_simulated: whether its nodes are simulated. There a job that is queued again starts soon
            after its time has come, which nothing but the next look at all jobs notices.

    Entries of the spec's `settings` come after ours and replace those of the same name.
    """
    limits = [
        LONGEST_WINDOW_MIN if one.max_time is None else one.max_time.value / 60
        for one in written_partitions(spec).values()
    ]
    longest = math.ceil(max(limits, default=SHORTEST_WINDOW_MIN))
    window = min(max(longest, SHORTEST_WINDOW_MIN), LONGEST_WINDOW_MIN)
    resolution = next(seconds for most, seconds in _RESOLUTION_S if window <= most)
    ours = [
        "nohold_on_prolog_fail",
        "bf_continue",
        f"bf_window={window}",
        f"bf_resolution={resolution}",
        *([f"max_switch_wait={SWITCH_WAIT_S}"] if has_topology else []),
        *([f"sched_interval={SIMULATED_LOOK_S}"] if is_simulated else []),
    ]
    slurm = spec.scheduler
    written = slurm.settings.slurm if isinstance(slurm, SlurmScheduler) else {}
    theirs = [word for word in str(written.get(SCHEDULER_PARAMETERS, "")).split(",") if word]
    said = {word.partition("=")[0] for word in theirs}
    return [word for word in ours if word.partition("=")[0] not in said] + theirs
