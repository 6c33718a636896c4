"""The typed spec: one file per noun, frozen, every field documented.

The JSON Schema editors use is generated from these types, and so is the loader's strictness: an
unknown key is an error. Structure lives here; meaning lives in `schemas/checks`.
"""

from .accounts import Account, Qos
from .boot import Boot, GpuSettings
from .budget import Budget
from .checkpointing import Checkpointing
from .cluster import ClusterSpec
from .firmware import Firmware, FirmwareWanted
from .hardening import Hardening
from .kubernetes import KubernetesGpu, KubernetesScheduler, VirtualAddress
from .link import Link
from .market import Count, Rung
from .monitoring import Monitoring
from .partition import Partition, Spill, SpillOnly
from .pool import FabricClass, HostEntry, NodeCpu, Pool, PoolRole
from .rdma import Ipoib, Rdma
from .scheduler import (
    Accounting,
    JobRules,
    Maintenance,
    PriorityWeights,
    Scheduler,
    SlurmScheduler,
    Topology,
)
from .secrets import AgeSecrets, Secrets, SopsSecrets
from .sites import (
    AwsSite,
    AzureSite,
    BareMetalSite,
    CloudSite,
    GcpSite,
    LocalSite,
    SimulatedSite,
    Site,
    SiteNoun,
    Ssh,
)
from .smoke import AllReduce, Smoke
from .software import ClusterSoftware, Software, SourceRedirect
from .storage import (
    GpfsStorage,
    LustreServers,
    LustreStorage,
    NfsStorage,
    ObjectStorage,
    ScratchStorage,
    Storage,
    StorageNoun,
)
from .update import Update
from .user import DirectoryUsers, User

__all__ = [
    "Account",
    "Accounting",
    "AgeSecrets",
    "AllReduce",
    "AwsSite",
    "AzureSite",
    "BareMetalSite",
    "Boot",
    "Budget",
    "Checkpointing",
    "CloudSite",
    "ClusterSoftware",
    "ClusterSpec",
    "Count",
    "DirectoryUsers",
    "FabricClass",
    "Firmware",
    "FirmwareWanted",
    "GcpSite",
    "GpfsStorage",
    "GpuSettings",
    "Hardening",
    "HostEntry",
    "Ipoib",
    "JobRules",
    "KubernetesGpu",
    "KubernetesScheduler",
    "Link",
    "LocalSite",
    "LustreServers",
    "LustreStorage",
    "Maintenance",
    "Monitoring",
    "NfsStorage",
    "NodeCpu",
    "ObjectStorage",
    "Partition",
    "Pool",
    "PoolRole",
    "PriorityWeights",
    "Qos",
    "Rdma",
    "Rung",
    "Scheduler",
    "ScratchStorage",
    "Secrets",
    "SimulatedSite",
    "Site",
    "SiteNoun",
    "SlurmScheduler",
    "Smoke",
    "Software",
    "SopsSecrets",
    "SourceRedirect",
    "Spill",
    "SpillOnly",
    "Ssh",
    "Storage",
    "StorageNoun",
    "Topology",
    "Update",
    "User",
    "VirtualAddress",
]
