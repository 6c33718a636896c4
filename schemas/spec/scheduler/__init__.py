"""Schedulers: what all have, Slurm's and Kubernetes' own settings, or none."""

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

Scheduler: TypeAlias = SlurmScheduler | KubernetesScheduler | NoScheduler
"""Any scheduler; `type:` chooses the branch."""

__all__ = [
    "Account",
    "Accounting",
    "CloudIdentity",
    "JobRules",
    "KubernetesGpu",
    "KubernetesScheduler",
    "Maintenance",
    "NoScheduler",
    "Oidc",
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
    "VirtualAddress",
]
