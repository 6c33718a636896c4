"""Schedulers: what all have, Slurm's and Kubernetes' own settings, or none; and workloads."""

from typing import TypeAlias

from .kubernetes import (
    CloudIdentity,
    KubernetesGpu,
    KubernetesScheduler,
    Oidc,
    RegistryLogin,
    VirtualAddress,
)
from .no_scheduler import NoScheduler
from .slurm import (
    Accounting,
    JobRules,
    PriorityWeights,
    SlurmScheduler,
    SlurmSettings,
    Topology,
)
from .work import Account, Maintenance, Partition, Qos, Spill, SpillOnly
from .workload import (
    CommandWorkload,
    DeepspeedWorkload,
    MegatronWorkload,
    MpiWorkload,
    Parallel,
    TorchrunElasticWorkload,
    TorchrunWorkload,
    TorchWorkload,
    Workload,
    WorkloadCheckpoint,
    WorkloadModel,
)

Scheduler: TypeAlias = SlurmScheduler | KubernetesScheduler | NoScheduler
"""Any scheduler; `type:` chooses the branch."""

__all__ = [
    "Account",
    "Accounting",
    "CloudIdentity",
    "CommandWorkload",
    "DeepspeedWorkload",
    "JobRules",
    "KubernetesGpu",
    "KubernetesScheduler",
    "Maintenance",
    "MegatronWorkload",
    "MpiWorkload",
    "NoScheduler",
    "Oidc",
    "Parallel",
    "Partition",
    "PriorityWeights",
    "Qos",
    "RegistryLogin",
    "Scheduler",
    "SlurmScheduler",
    "SlurmSettings",
    "Spill",
    "SpillOnly",
    "Topology",
    "TorchWorkload",
    "TorchrunElasticWorkload",
    "TorchrunWorkload",
    "VirtualAddress",
    "Workload",
    "WorkloadCheckpoint",
    "WorkloadModel",
]
