"""The typed spec: one file per noun, frozen, every field documented.

The JSON Schema editors use is generated from these types, and so is the loader's strictness: an
unknown key is an error. Structure lives here; meaning lives in `schemas/checks`.
"""

from gcluster.schemas.spec.cluster import ClusterSpec
from gcluster.schemas.spec.pool import HostEntry, NodeCpu, Pool, PoolRole
from gcluster.schemas.spec.scheduler import Partition, SlurmScheduler
from gcluster.schemas.spec.secrets import AgeSecrets
from gcluster.schemas.spec.sites import BareMetalSite, LocalSite, SimulatedSite, Site, Ssh
from gcluster.schemas.spec.smoke import AllReduce, Smoke
from gcluster.schemas.spec.user import User

__all__ = [
    "AgeSecrets",
    "AllReduce",
    "BareMetalSite",
    "ClusterSpec",
    "HostEntry",
    "LocalSite",
    "NodeCpu",
    "Partition",
    "Pool",
    "PoolRole",
    "SimulatedSite",
    "Site",
    "SlurmScheduler",
    "Smoke",
    "Ssh",
    "User",
]
