"""The compiler: a checked spec and its hosts in, groups of hosts and their steps out.

The rule it keeps: no node's variables hold the host list. Nodes are told the names and addresses
of controllers and logins only; whatever else they must know they fetch from the controller. So a
node more or less changes that node and the controllers' slurm.configure, and nothing else.

Install phases take no variables of the cluster or the pool and are the same on every node of a
machine type, those of MUNGE, Slurm and MPI on every node at all: baked images then fit, and a
daemon runs only where configure has given it its file.
"""

from __future__ import annotations

from ...schemas.bundle import BundleManifest
from ...schemas.catalog import Catalog
from ...schemas.derived.control_planes import managed_pools
from ...schemas.spec import ClusterSpec, KubernetesScheduler, PoolRole
from ..hosts import ClusterInventory, Host
from .allreduce import allreduce_steps
from .base import base_steps
from .depot import bundle_source_steps, depot_steps, living_on
from .enroot_pyxis import plugin_lines
from .kubernetes import KubernetesAt, kubernetes_steps, taking
from .mpi import mpi_steps
from .munge import munge_steps
from .nccl import JOB_ENVIRONMENT, nccl_steps
from .node import node_facts
from .roles import node_role_steps
from .self_converge import licences, pulls, self_converge_steps
from .site_routes import site_routes_steps
from .slurm import (
    TASK_PROLOG,
    controllers_and_name,
    is_simulated,
    job_programs,
    job_scratch,
    slurm_cluster_variables,
    slurm_steps,
)
from .slurm_accounting import accounting_hosts
from .slurm_nodes import gpu_count
from .slurmdbd import slurmdbd_steps
from .steps import CompiledCluster, Group, Stage, Step
from .wireguard import wireguard_steps

ROLE_ORDER: tuple[PoolRole, ...] = ("controller", "login", "compute")
"""Controllers first: nodes fetch their configuration from them."""

_STAGES = list(Stage)


def compile_cluster(
    spec: ClusterSpec,
    inventory: ClusterInventory,
    catalog: Catalog,
    bundle: BundleManifest | None = None,
    kubernetes: KubernetesAt | None = None,
) -> CompiledCluster:
    """Return what each pool's hosts must run: same spec and hosts, same result.

    The order of keys in the spec doesn't matter: pools are ordered by role, then by name.

    Args:
        spec: a spec that passed its checks.
        inventory: its hosts; an address may be unknown ("") while they are only planned.
        catalog: describes the machines of the compute pools.
        bundle: what the nodes take everything from; None: from where the spec says.
        kubernetes: bundle of Kubernetes' own programs and images; None: packages and a registry.
    """
    pools = sorted(spec.pools, key=lambda name: (ROLE_ORDER.index(spec.pools[name].role), name))
    hosts = _by_pool(pools, inventory)
    compute = {name: hosts[name] for name in pools if spec.pools[name].role == "compute"}
    controllers = [
        h for name in pools if spec.pools[name].role == "controller" for h in hosts[name]
    ]
    found_by_name = [h for name in pools if name not in compute for h in hosts[name]]
    simulated = is_simulated(spec, catalog)
    told_to_all = controllers_and_name(spec, controllers)
    facts = node_facts(spec, catalog, inventory)
    run_accounting = accounting_hosts(spec, inventory.hosts)
    told_to_controllers = slurm_cluster_variables(
        spec,
        compute,
        catalog,
        controllers=[facts[name] for name in pools if spec.pools[name].role == "controller"],
        run_accounting=run_accounting,
        elastic=True,
    )
    clouds_own = managed_pools(spec)  # their cloud sets them up, and nobody logs in there
    pulled = pulls(spec, inventory)
    if pulled:
        told_to_controllers["slurm_licences"] = licences(spec, compute)
    if any(nccl_steps(facts[name]) for name in compute):
        told_to_controllers["slurm_task_prolog"] = JOB_ENVIRONMENT
    if not simulated:
        told_to_controllers |= job_programs(spec)
    scratch = job_scratch(spec, catalog)
    if scratch:
        told_to_controllers["slurm_task_prolog"] = TASK_PROLOG
    if lines := plugin_lines(facts.values()):
        told_to_controllers["slurm_plugins"] = lines
    if bundle is not None:
        facts = living_on(bundle, facts, controllers[0].address if controllers else "")

    facts = taking(kubernetes, facts)

    def scheduler_of(name: str) -> tuple[Step, ...]:
        pool, machine = spec.pools[name], facts[name].machine
        if isinstance(spec.scheduler, KubernetesScheduler):
            tested = pool.role == "compute"
            return (
                *kubernetes_steps(facts[name], controllers),
                *(mpi_steps() if tested else ()),
                *(allreduce_steps() if tested else ()),
            )
        return (
            *munge_steps(),
            *slurmdbd_steps(spec, name, run_accounting, simulated=simulated),
            *slurm_steps(
                pool.role,
                told_to_all,
                cluster=told_to_controllers,
                scratch=scratch,
                simulated_gpus=gpu_count(machine) if machine and machine.simulated else 0,
                version=spec.software.slurm,
            ),
            *mpi_steps(),
            *allreduce_steps(),
        )

    def steps_of(name: str) -> tuple[Step, ...]:
        pool = spec.pools[name]
        steps = (
            *depot_steps(facts[name], serves_roles=pulled),
            *bundle_source_steps(facts[name]),
            *base_steps(spec, found_by_name, pool.role, sets_time=facts[name].has_own_clock),
            *wireguard_steps(spec, name, inventory.hosts),
            *site_routes_steps(spec, name, inventory.hosts),
            *node_role_steps(facts[name]),
            *scheduler_of(name),
            *(
                self_converge_steps(
                    name, pool.role, controllers, cluster=spec.name, simulated=simulated
                )
                if pulled
                else ()
            ),
        )
        return tuple(sorted(steps, key=lambda step: _STAGES.index(step.stage)))

    return CompiledCluster(
        cluster=spec.name,
        groups=tuple(
            Group(
                name=name,
                hosts=tuple(host.name for host in hosts[name]),
                steps=steps_of(name) if name not in clouds_own else (),
            )
            for name in pools
        ),
    )


def _by_pool(pools: list[str], inventory: ClusterInventory) -> dict[str, tuple[Host, ...]]:
    """Return pool -> hosts in one pass (asking the inventory pool by pool is quadratic)."""
    lists: dict[str, list[Host]] = {name: [] for name in pools}
    for host in inventory.hosts:
        lists[host.pool].append(host)
    return {name: tuple(members) for name, members in lists.items()}
