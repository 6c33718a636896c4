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
    AccelerateWorkload,
    CommandWorkload,
    DeepspeedWorkload,
    Degrees,
    JaxWorkload,
    MegatronWorkload,
    MpiWorkload,
    NemoWorkload,
    Parallel,
    RayWorkload,
    ScriptModel,
    TorchrunElasticWorkload,
    TorchrunWorkload,
    TorchtitanWorkload,
    TorchWorkload,
    Workload,
    WorkloadCheckpoint,
    WorkloadGate,
    WorkloadModel,
)

Scheduler: TypeAlias = SlurmScheduler | KubernetesScheduler | NoScheduler
"""Any scheduler; `type:` chooses the branch."""

__all__ = [
    "AccelerateWorkload",
    "Account",
    "Accounting",
    "CloudIdentity",
    "CommandWorkload",
    "DeepspeedWorkload",
    "Degrees",
    "JaxWorkload",
    "JobRules",
    "KubernetesGpu",
    "KubernetesScheduler",
    "Maintenance",
    "MegatronWorkload",
    "MpiWorkload",
    "NemoWorkload",
    "NoScheduler",
    "Oidc",
    "Parallel",
    "Partition",
    "PriorityWeights",
    "Qos",
    "RayWorkload",
    "RegistryLogin",
    "Scheduler",
    "ScriptModel",
    "SlurmScheduler",
    "SlurmSettings",
    "Spill",
    "SpillOnly",
    "Topology",
    "TorchWorkload",
    "TorchrunElasticWorkload",
    "TorchrunWorkload",
    "TorchtitanWorkload",
    "VirtualAddress",
    "Workload",
    "WorkloadCheckpoint",
    "WorkloadGate",
    "WorkloadModel",
]
