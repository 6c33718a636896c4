"""What Kubernetes objects are compiled from: the spec, its hosts, and what holds for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

from ....schemas.catalog import Catalog, Machine
from ....schemas.catalog.model.machine import slices_of
from ....schemas.derived.control_planes import (
    DEFAULT_RELEASE,
    GpuSharing,
    gpu_sharing,
    release_of,
    watched_by_roles,
    without_channels,
)
from ....schemas.derived.graph import AccountTree
from ....schemas.spec import Account, ClusterSpec, KubernetesScheduler, Partition
from ....schemas.spec.cluster import Monitoring
from ...accounting.desired import EVERYONE, desired_accounting
from ...accounting.records import Association
from ...hosts import ClusterInventory, Host
from ..node import NodeFacts, node_facts
from ..slurm.nodes import gpu_count, machine_of, memory_mib
from ..slurm.scheduling import written_partitions
from ..steps import Json

MONITORING = "kube-prometheus-stack"
"""Add-on of `monitoring`: the chart of Prometheus' operator and what it runs."""


class KubernetesFacts(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One cluster under Kubernetes."""

    spec: ClusterSpec
    scheduler: KubernetesScheduler
    catalog: Catalog
    inventory: ClusterInventory
    nodes: dict[str, NodeFacts]
    """Pool -> what is known of its nodes."""
    without: frozenset[str] = frozenset()
    """Add-ons that its nodes can't get: neither they nor what needs them is compiled."""

    @cached_property
    def compute(self) -> dict[str, tuple[Host, ...]]:
        """Pool that jobs are sent to -> its hosts, by name of the pool."""
        found = (name for name, pool in self.spec.pools.items() if pool.runs_jobs)
        return {name: self.inventory.in_pool(name) for name in sorted(found)}

    def machine(self, pool: str) -> Machine:
        """Return a compute pool's machine, with the pool's own overrides."""
        return machine_of(self.spec, pool, self.catalog)

    def sharing(self, pool: str) -> GpuSharing:
        """Return how pods share a pool's GPUs."""
        return gpu_sharing(self.scheduler, pool, self.spec.pools[pool])

    @cached_property
    def monitoring(self) -> Monitoring | None:
        """The spec's monitoring; None: it has none, or roles set it up, or none has its add-on."""
        requested = None if watched_by_roles(self.spec) else self.spec.monitoring
        if requested is None or not requested.prometheus or MONITORING in self.without:
            return None
        return requested

    @cached_property
    def named_addons(self) -> frozenset[str]:
        """Add-ons that the spec names and its nodes get, with what these can't be without."""
        named = set(self.scheduler.addons)
        more = {first for name in named for first in self.catalog.addons[name].after}
        return frozenset(named | more) - self.without

    @cached_property
    def partitions(self) -> Mapping[str, Partition]:
        """Partitions by name; where the spec has none, "main" with every compute pool."""
        return dict(sorted(written_partitions(self.spec).items()))

    @cached_property
    def accounts(self) -> Mapping[str, Account]:
        """Accounts by name; where the spec has none, one of all the people it lists."""
        accounts = self.scheduler.accounts
        if accounts:
            return dict(sorted(accounts.items()))
        return {EVERYONE: Account(users=[user.name for user in self.spec.local_users])}

    @cached_property
    def _partitions_by_account(self) -> dict[str, list[str]]:
        """Account -> the partitions that are for it: they name it or one that it is part of."""
        tree = AccountTree(self.accounts)
        found: dict[str, list[str]] = {name: [] for name in self.accounts}
        for name, one in self.partitions.items():
            for account in tree.with_parts(one.accounts) if one.accounts else self.accounts:
                found.setdefault(account, []).append(name)
        return found

    @cached_property
    def associations(self) -> Mapping[str, Association]:
        """Account -> its record in Slurm's database: QOS and default, parents' included."""
        return desired_accounting(self.spec).accounts

    @cached_property
    def default_partition(self) -> str | None:
        """Partition of jobs that name none."""
        if len(self.partitions) == 1:
            return next(iter(self.partitions))
        return next((name for name, one in self.partitions.items() if one.default), None)

    def partitions_of(self, account: str) -> list[str]:
        """Return the partitions that an account's jobs may go to."""
        return self._partitions_by_account[account]

    def ancestors(self, account: str) -> list[str]:
        """Return an account and those it is part of, the account first."""
        trail = [account]
        while (parent := self.accounts[trail[-1]].parent) is not None:
            trail.append(parent)
        return trail

    def most(self, pool: str) -> int:
        """Return how many nodes a pool has at most: those that come and go are counted in."""
        return max(len(self.compute[pool]), self.spec.pools[pool].most or 0)

    @property
    def release(self) -> str:
        """Kubernetes' minor release: the spec's, else the one that the tested set has."""
        requested = self.spec.software.kubernetes
        known = (node.version("kubernetes") for node in self.nodes.values())
        return release_of(requested) or next(filter(None, known), DEFAULT_RELEASE)

    def providers(self, pools: Iterable[str]) -> set[str]:
        """Return the providers of these pools' sites."""
        return {self.nodes[pool].provider for pool in pools}


def kubernetes_facts(
    spec: ClusterSpec,
    inventory: ClusterInventory,
    catalog: Catalog,
    without: frozenset[str] = frozenset(),
) -> KubernetesFacts:
    """Return the facts of a spec whose scheduler is Kubernetes.

    Args:
        spec: a spec that passed its checks.
        inventory: its hosts.
        catalog: machines, fabrics and add-ons.
        without: add-ons that its nodes can't get.

    Raises:
        TypeError: the scheduler is another one.
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        raise TypeError(spec.scheduler)
    if "kueue" in without:
        unqueued = msgspec.structs.replace(spec.scheduler, kueue=False)
        spec = msgspec.structs.replace(spec, scheduler=unqueued)
    assert isinstance(spec.scheduler, KubernetesScheduler)  # noqa: S101  # it was, and is
    return KubernetesFacts(
        spec=spec,
        scheduler=spec.scheduler,
        catalog=catalog,
        inventory=inventory,
        nodes=node_facts(spec, catalog, inventory),
        without=without,
    )


_AKS_SPOT = {
    "key": "kubernetes.azure.com/scalesetpriority",
    "operator": "Equal",
    "value": "spot",
    "effect": "NoSchedule",
}
"""The taint that AKS sets on nodes of spot pools unconditionally
(learn.microsoft.com/azure/aks/spot-node-pool, read 2026-11)."""


def tolerations(facts: KubernetesFacts, pools: Iterable[str]) -> list[Json]:
    """Return what pods must tolerate to run on these pools' nodes: the spec's taints, a cloud's."""
    pools = list(pools)
    found = [
        {"key": one.key, "operator": "Equal", "value": one.value, "effect": one.effect}
        for pool in pools
        if (requested := facts.spec.pools[pool].kubernetes) is not None
        for one in requested.taints
    ]
    given = [one for index, one in enumerate(found) if one not in found[:index]]
    return [*given, *_of_cloud(facts, pools)]


def _of_cloud(facts: KubernetesFacts, pools: Iterable[str]) -> list[Json]:
    if facts.scheduler.control_plane != "aks":
        return []
    bought = [option for pool in pools for option in facts.spec.pools[pool].market]
    spot = any("spot" in {option, getattr(option, "market", "")} for option in bought)
    return [dict(_AKS_SPOT)] if spot else []


GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
"""GPU vendor -> extended resource of its device plugin."""
DEVICE_CLASSES = {"nvidia": "gpu.nvidia.com", "amd": "gpu.amd.com"}
"""GPU vendor -> device class of its driver for dynamic resource allocation."""


def gpu_resource(facts: KubernetesFacts, pool: str) -> str | None:
    """Return the resource name of a pool's GPUs; None: it has no GPUs.

    MIG with one profile for all GPUs (strategy "single") and time slices keep the name.
    """
    gpu = facts.machine(pool).gpu
    return None if gpu is None else GPU_RESOURCES[gpu.vendor]


def units_per_gpu(facts: KubernetesFacts, pool: str) -> int:
    """Return what one GPU of a pool counts for: the pods that it is shared or cut for."""
    gpu, sharing = facts.machine(pool).gpu, facts.sharing(pool)
    if gpu is None or gpu.vendor != "nvidia":
        return 1
    cut = slices_of(gpu.model, gpu.memory_gib, sharing.mig) if sharing.mig else 1
    return (cut or 1) * sharing.time_slices


CHANNEL_RESOURCE = "nvidia.com/imex-channel"
"""What Kueue counts a pod's channel of IMEX as: it admits no job with a claim of a class that
nothing counts (kubernetes-sigs/kueue pkg/dra/claims.go, read 2026-11)."""


def has_channels(facts: KubernetesFacts, pool: str) -> bool:
    """Whether pods on a pool's nodes get channels of IMEX: NVLink reaches memory of other nodes.

    Slices of GPUs reach no other GPU over NVLink (NVIDIA MIG user guide, "Deployment
    Considerations").
    """
    machine = facts.machine(pool)
    if machine.simulated or machine.domain_nodes == 1 or facts.sharing(pool).mig is not None:
        return False
    return without_channels(facts.scheduler, facts.release) is None


def capacity(facts: KubernetesFacts, pool: str) -> dict[str, int]:
    """Return what all nodes of a pool have together: GPUs, CPUs, memory in MiB, IMEX channels.

    What the catalog lacks of a machine is left out. Memory counts with the share that jobs get
    under Slurm: the rest is the system's.
    """
    machine, nodes = facts.machine(pool), facts.most(pool)
    found: dict[str, int] = {}
    if machine.cpu.threads:
        found["cpu"] = machine.cpu.threads * nodes
    if memory := memory_mib(machine, 0):
        found["memory"] = memory * nodes
    resource = gpu_resource(facts, pool)
    if resource is not None:
        found[resource] = gpu_count(machine) * units_per_gpu(facts, pool) * nodes
    if has_channels(facts, pool):
        found[CHANNEL_RESOURCE] = nodes
    return found


def covered(facts: KubernetesFacts) -> list[str]:
    """Return the resources that queues count: those known of every pool, and all of GPUs."""
    pools = [capacity(facts, pool) for pool in facts.compute]
    shared = [name for name in ("cpu", "memory") if pools and all(name in one for one in pools)]
    gpus = sorted({name for one in pools for name in one} - {"cpu", "memory"})
    return [*shared, *gpus]


def quantity(resource: str, amount: int) -> str:
    """Return an amount as the API takes it; memory is in MiB."""
    return f"{amount}Mi" if resource == "memory" else str(amount)
