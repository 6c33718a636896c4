"""The typed spec: one file per noun, frozen, every field documented.

The JSON Schema editors use is generated from these types, and so is the loader's strictness: an
unknown key is an error. Structure lives here; meaning lives in `schemas/checks`.
"""

from gcluster.schemas.spec.accounts import Account, Qos
from gcluster.schemas.spec.boot import Boot, GpuSettings
from gcluster.schemas.spec.budget import Budget
from gcluster.schemas.spec.checkpointing import Checkpointing
from gcluster.schemas.spec.cluster import ClusterSpec
from gcluster.schemas.spec.firmware import Firmware, FirmwareWanted
from gcluster.schemas.spec.hardening import Hardening
from gcluster.schemas.spec.kubernetes import KubernetesGpu, KubernetesScheduler, VirtualAddress
from gcluster.schemas.spec.link import Link
from gcluster.schemas.spec.market import Count, Rung
from gcluster.schemas.spec.monitoring import Monitoring
from gcluster.schemas.spec.partition import Partition, Spill, SpillOnly
from gcluster.schemas.spec.pool import FabricClass, HostEntry, NodeCpu, Pool, PoolRole
from gcluster.schemas.spec.rdma import Ipoib, Rdma
from gcluster.schemas.spec.scheduler import (
    Accounting,
    JobRules,
    Maintenance,
    PriorityWeights,
    Scheduler,
    SlurmScheduler,
    Topology,
)
from gcluster.schemas.spec.secrets import AgeSecrets, KmsSecrets, Secrets, SopsSecrets
from gcluster.schemas.spec.sites import (
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
from gcluster.schemas.spec.smoke import AllReduce, Smoke
from gcluster.schemas.spec.software import ClusterSoftware, Software, SourceRedirect
from gcluster.schemas.spec.storage import (
    GpfsStorage,
    LustreServers,
    LustreStorage,
    NfsStorage,
    ObjectStorage,
    ScratchStorage,
    Storage,
    StorageNoun,
)
from gcluster.schemas.spec.update import Update
from gcluster.schemas.spec.user import DirectoryUsers, User

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
    "KmsSecrets",
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
