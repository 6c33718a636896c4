"""The roles munge and slurm: all of slurm.conf for controllers, little for nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.derived.hostlist import fold
from ....schemas.spec import ClusterSpec, KubernetesScheduler, PoolRole, SlurmScheduler
from ...accounting.desired import whole_minutes
from ...hosts import Host, elastic_nodes
from ..gpu.containers import plugin_lines
from ..gpu.nccl import nccl_steps
from ..node import ClusterFacts, NodeFacts, are_doubles
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from ..storage.disks import scratch_folder
from ..system.node_health import CHECK_PROGRAM
from ..system.packages import EPEL, epel
from ..system.self_converge import licences
from .accounting import accounting_hosts, accounting_variables, gives_notice, partition_access
from .elastic import cloud_node_lines, elastic_variables, placeholders
from .job_programs import job_programs
from .nodes import (
    cpus_per_gpu,
    gpu_count,
    machine_of,
    mem_per_cpu_mib,
    node_lines,
    node_shape,
    reserved_memory_mib,
)
from .packages import install_variables
from .scheduling import (
    JWT_SECRET,
    connection_variables,
    default_memory,
    has_rest_api,
    has_windows,
    partition_limits,
    scheduler_parameters,
    scheduling_variables,
    state_variables,
    written_partitions,
)
from .topology import has_feature, slurm_release, slurm_topology

SIMULATED_NODE_TIMEOUT_S = 30
"""Simulated nodes share one machine with their controller: no network to be patient with."""


ROLES: dict[PoolRole, str] = {"controller": "controller", "login": "login", "compute": "node"}
"""Role of a pool -> what its hosts are to Slurm."""


TASK_PROLOG = "/usr/local/libexec/gcluster/task-prolog.sh"
"""Run for each task where jobs have scratch or settings; slurm.install puts it on all nodes."""


def slurm_cluster_variables(
    spec: ClusterSpec,
    compute: dict[str, tuple[Host, ...]],
    catalog: Catalog,
    *,
    controllers: Sequence[NodeFacts] = (),
    run_accounting: Sequence[Host] = (),
    elastic: bool = False,
) -> dict[str, Json]:
    """Return the controllers' variables of the whole cluster.

    Args:
        spec: the cluster.
        compute: compute pool -> its hosts.
        catalog: has the pools' machines.
        controllers: the pools whose Slurm reads it.
        run_accounting: the hosts that run slurmdbd; without them no account or QOS is checked.
        elastic: whether elastic pools' nodes are created on demand.
    """
    simulated = are_doubles(spec, catalog)
    reserved = reserved_memory_mib(spec)
    shapes = {
        pool: node_shape(machine_of(spec, pool, catalog), pool, spec.pools[pool], reserved)
        for pool in compute
    }
    names = {pool: [host.name for host in hosts] for pool, hosts in compute.items()}
    hosts = [host for pool in sorted(compute) for host in compute[pool]]
    if elastic:
        for pool, coming in elastic_nodes(spec).items():
            names[pool].extend(coming)
        hosts.extend(placeholders(spec))
    access = partition_access(spec) if run_accounting else {}
    topology = slurm_topology(spec, hosts, catalog, controllers)
    has_topology = isinstance(topology, dict) and topology["type"] != "flat"
    variables: dict[str, Json] = {
        "slurm_nodes": [
            line for pool in sorted(compute) for line in node_lines(compute[pool], shapes[pool])
        ],
        "slurm_partitions": _partitions(spec, names, catalog, access),
        "slurm_topology": topology,
        "slurm_scheduler_parameters": scheduler_parameters(
            spec, has_topology=has_topology, is_simulated=simulated
        ),
        "slurm_simulated": simulated,
        "slurm_health_check": CHECK_PROGRAM,
    }
    variables |= state_variables(spec) | connection_variables(spec)
    if has_rest_api(spec):
        variables["slurm_rest_api"] = True
    if simulated:
        variables["slurm_node_timeout"] = SIMULATED_NODE_TIMEOUT_S
    if elastic:
        variables["slurm_nodes"] += cloud_node_lines(spec, shapes)
        variables |= elastic_variables(spec, compute)
    variables |= scheduling_variables(spec, catalog)
    release = slurm_release(controllers)
    if run_accounting and gives_notice(spec) and has_feature(release, "PreemptParameters"):
        variables["slurm_preempt_signal"] = True
    return variables | accounting_variables(spec, run_accounting)


@role_compiler("slurm", sources=EPEL, chosen=epel, components=("slurm",), after=("slurmdbd",))
def slurm_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role slurm for the hosts of one pool; none without controllers of Slurm.

    Only controllers get what the whole cluster is; nodes fetch it from them (configless). A node is
    drained to have another version: between its packages and its daemon's start a job would meet
    programs of two versions.
    """
    if isinstance(node.spec.scheduler, KubernetesScheduler) or not node.cluster.controllers:
        return []
    is_compute = node.pool.is_compute
    what: dict[str, Json] = {"slurm_role": ROLES[node.pool.role]}
    if node.pool.compute:
        what["slurm_controller_computes"] = True
    configure = controllers_and_name(node.spec, node.cluster.controllers) | what
    windows: dict[str, Json] = {"slurm_x11": True} if has_windows(node.spec) else {}
    configure |= {} if node.pool.role == "compute" else windows
    secrets: dict[str, str] = {}
    if node.pool.role == "controller":
        configure |= _controller_variables(node.spec, node.catalog, node.cluster)
        if has_rest_api(node.spec):
            secrets = {"slurm_jwt_key_file": JWT_SECRET}
    machine = node.machine if is_compute else None
    if machine is not None and machine.simulated and gpu_count(machine):
        configure["slurm_gpu_devices"] = gpu_count(machine)
    if is_compute and (scratch := job_scratch(node.spec, node.cluster)):
        configure["slurm_scratch"] = scratch
    return [
        _install(install_variables(node, "slurm"), windows, drains=is_compute),
        _step("configure", configure, secrets),
        *([_step("join", {})] if is_compute else []),
        _step("verify", what),
    ]


def _controller_variables(
    spec: ClusterSpec, catalog: Catalog, cluster: ClusterFacts
) -> dict[str, Json]:
    """Return the controllers' variables of the whole cluster, and what is run around its jobs."""
    pools = cluster.nodes
    compute = {n: hosts for n, hosts in cluster.by_pool.items() if pools[n].pool.is_compute}
    variables = slurm_cluster_variables(
        spec,
        compute,
        catalog,
        controllers=[pools[n] for n in cluster.by_pool if pools[n].pool.role == "controller"],
        run_accounting=accounting_hosts(spec, cluster.hosts),
        elastic=True,
    )
    if cluster.pulls:
        variables["slurm_licences"] = licences(spec, compute)
    has_settings = any(nccl_steps(pools[name]) for name in compute)
    has_slices = any(pools[name].pool.is_sliced for name in compute)
    prolog = TASK_PROLOG if has_settings or has_slices or job_scratch(spec, cluster) else ""
    lines = plugin_lines(pools.values(), prolog)
    variables |= job_programs(spec, on_machines=not cluster.simulated)
    if not cluster.simulated:
        variables |= _machine_settings(spec, pools.values(), has_pyxis=bool(lines))
    if lines:
        variables["slurm_plugins"] = lines
    elif prolog:
        variables["slurm_task_prolog"] = prolog
    return variables


def _machine_settings(
    spec: ClusterSpec, pools: Collection[NodeFacts], *, has_pyxis: bool
) -> dict[str, Json]:
    """Return what only machines can do: restart, mount folders for each job.

    Containers of the local provider stop when they restart, and may not mount. pyxis makes its
    containers outside of the job's folders (spank_user_init in slurmstepd): its jobs would see
    others than their batch script, so they all have the node's. The folders lie on a pool's local
    disks where it has them as scratch: what a job writes to /tmp then fills no boot disk.
    """
    release = slurm_release(node for node in pools if node.pool.role == "controller")
    flags = ["Alloc", "Contain"]
    flags += [
        f for f in ("DeferBatch", "ForceRequeueOnFail") if has_feature(release, f"PrologFlags={f}")
    ]
    flags += ["X11"] if has_windows(spec) else []
    settings: dict[str, Json] = {"slurm_prolog_flags": flags}
    if not has_pyxis and has_feature(release, "private folders of a job, shared mounts"):
        supports_namespaces = release is not None and has_feature(release, "NamespaceType")
        settings["slurm_private_tmp"] = (
            "NamespaceType=namespace/tmpfs"
            if supports_namespaces
            else "JobContainerType=job_container/tmpfs"
        )
        folders = {n.name: folder for n in pools if (folder := scratch_folder(n, "job-tmp"))}
        settings |= {"slurm_job_tmp_folders": folders} if folders else {}
    if isinstance(spec.scheduler, SlurmScheduler):
        settings["slurm_reboot_timeout"] = int(spec.scheduler.resume_s)
    return settings


def job_scratch(spec: ClusterSpec, cluster: ClusterFacts) -> str:
    """Return where jobs get a folder on their nodes' disks; "" for nowhere, and on containers."""
    slurm = spec.scheduler
    if not isinstance(slurm, SlurmScheduler) or cluster.simulated:
        return ""
    return slurm.job_scratch or ""


def controllers_and_name(spec: ClusterSpec, controllers: Iterable[Host]) -> dict[str, Json]:
    """Return what every host gets: the cluster's name and who runs slurmctld."""
    named = [{"name": host.name, "address": host.address} for host in controllers]
    return {"slurm_cluster": spec.name, "slurm_controllers": named}


def _step(phase: Phase, variables: dict[str, Json], secrets: dict[str, str] | None = None) -> Step:
    """Return a step; slurmstepd keeps the jobs of a slurmd that is restarted."""
    return Step(
        stage=Stage.SCHEDULER,
        role="slurm",
        phase=phase,
        variables=variables,
        secrets=secrets or {},
        spares_jobs=True,
    )


def _install(variables: dict[str, Json], windows: dict[str, Json], *, drains: bool) -> Step:
    spares_jobs = not (variables and drains)
    built = "slurm_built" in variables
    step = _step("install", variables | windows)
    return msgspec.structs.replace(step, spares_jobs=spares_jobs, from_mirror=built)


def _partitions(
    spec: ClusterSpec,
    names: dict[str, list[str]],
    catalog: Catalog,
    access: dict[str, dict[str, Json]],
) -> list[Json]:
    """Return the partitions by name; without any in the spec, one of all compute pools.

    A job without memory or CPUs in its request gets its share: otherwise Slurm gives it all memory
    of a node, and no second job fits there. The smallest share of the pools counts.
    """
    written = written_partitions(spec)
    only = len(written) == 1
    reserved = reserved_memory_mib(spec)
    lines = []
    for name, partition in sorted(written.items()):
        machines = [machine_of(spec, pool, catalog) for pool in partition.pools]
        pools = [spec.pools[pool] for pool in partition.pools]
        line = {
            "name": name,
            "nodes": fold(host for pool in partition.pools for host in names[pool]),
            "default": partition.default or only,
            "max_time_minutes": whole_minutes(partition.max_time) or 0,
            **default_memory(
                spec, partition, min(mem_per_cpu_mib(machine, reserved) for machine in machines)
            ),
            "cpus_per_gpu": min(map(cpus_per_gpu, machines, pools)),
            **partition_limits(partition),
            **access.get(name, {}),
        }
        lines.append(line)
    return lines


MUNGE_SECRET = "munge"  # noqa: S105  # the secret's name
"""Name of the secret that holds the cluster's MUNGE key."""


@role_compiler("munge", after=("node_health",))
def munge_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role munge; none without Slurm."""
    if not isinstance(node.spec.scheduler, SlurmScheduler):
        return []
    return [
        Step(stage=Stage.SCHEDULER, role="munge", phase="install", variables={}, spares_jobs=True),
        Step(
            stage=Stage.SCHEDULER,
            role="munge",
            phase="configure",
            variables={},
            secrets={"munge_key_file": MUNGE_SECRET},
            spares_jobs=True,
        ),
        Step(stage=Stage.SCHEDULER, role="munge", phase="verify", variables={}),
    ]
